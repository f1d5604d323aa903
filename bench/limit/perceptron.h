#pragma once
/// The training step of a perceptron, D -> H -> relu -> 10 -> mean cross-entropy, with gradients and Adam. Weights stay
/// in panels of 32 columns (those of the last layer of 16), next to their gradients and moments.
#include <cmath>
#include <vector>

#include "adam.h"
#include "limit.h"
#include "panels.h"

namespace limit {

class Perceptron final : public Training {
 public:
  Perceptron(const Sizes& s, const Weights& w, const float* input, std::vector<std::int64_t> targets)
      : D(padded(s.D, 8)),
        H(padded(s.H, kWidth)),
        B(s.B),
        targets_(std::move(targets)),
        w_in_(D * H),
        b_in_(H),
        w_out_(H * kOut),
        b_out_(kOut),
        turned_(H * kOut),
        x_(B * D),
        h_(B * H),
        logits_(B * kOut),
        dh_(B * H),
        scratch_(kRows * (H + 8)),
        in_(w_in_, D * H),
        b_of_in_(b_in_, H),
        out_(w_out_, H * kOut),
        b_of_out_(b_out_, kOut) {
    for (Index k = 0; k < s.D; ++k)
      for (Index j = 0; j < s.H; ++j) w_in_[place(k, j)] = w.w_ih[k * s.H + j];
    for (Index k = 0; k < s.H; ++k)
      for (Index c = 0; c < kClasses; ++c) w_out_[k * kOut + c] = w.w_out[k * kClasses + c];
    std::copy_n(w.b_ih, s.H, static_cast<float*>(b_in_));
    std::copy_n(w.b_out, kClasses, static_cast<float*>(b_out_));
    for (Index b = 0; b < B; ++b) std::copy_n(input + b * s.D, s.D, x_ + b * D);
  }

  void run() override {
    forward();
    loss_and_gradient();
    hidden_backward();
    product_of_transposed<1>(h_, B, H, logits_, kOut, out_.grad, scratch_);
    product_of_transposed<2>(x_, B, D, dh_, H, in_.grad, scratch_);
    sum_rows(logits_, kOut, b_of_out_.grad);
    sum_rows(dh_, H, b_of_in_.grad);
    ++steps_;
    for (Trained* p : {&in_, &b_of_in_, &out_, &b_of_out_}) p->update(steps_);
  }

  float loss() const override { return loss_; }
  float grad_ih(std::int64_t k, std::int64_t column) const override { return in_.grad[place(k, column)]; }
  float grad_hh(std::int64_t, std::int64_t) const override { return 0; }
  float grad_out(std::int64_t k, std::int64_t c) const override { return out_.grad[k * kOut + c]; }

 private:
  static constexpr Index kWidth = 32;  ///< columns of a panel
  static constexpr Index kOut = 16;    ///< number of classes, padded

  Index place(Index k, Index column) const { return (column / kWidth * D + k) * kWidth + column % kWidth; }

  void forward() {
    if (B == 1) {
      for (Index j = 0; j < H; j += kWidth) {
        __m512 acc[2];
        row_by_panel(x_, w_in_ + j * D, D, acc);
        _mm512_store_ps(h_ + j, acc[0]);
        _mm512_store_ps(h_ + j + 16, acc[1]);
      }
    } else {
      product<2>(x_, w_in_, B, H, D, h_);
    }
    const __m512 zero = _mm512_setzero_ps();
    for (Index b = 0; b < B; ++b)
      for (Index j = 0; j < H; j += 16) {
        float* const at = h_ + b * H + j;
        _mm512_store_ps(at, _mm512_max_ps(_mm512_add_ps(_mm512_load_ps(at), _mm512_load_ps(b_in_ + j)), zero));
      }
    if (B == 1) {
      __m512 acc[1];
      row_by_panel(h_, w_out_, H, acc);
      _mm512_store_ps(logits_, acc[0]);
    } else {
      product<1>(h_, w_out_, B, kOut, H, logits_);
    }
  }

  /// Computes the loss and replaces the logits by their cotangents.
  void loss_and_gradient() {
    const __mmask16 classes = (1U << kClasses) - 1;
    const __m512 scale = _mm512_set1_ps(1.0F / static_cast<float>(B));
    double total = 0;
    for (Index b = 0; b < B; ++b) {
      float* const at = logits_ + b * kOut;
      const auto target = static_cast<std::uint32_t>(targets_[static_cast<std::size_t>(b)]);
      const __m512 logit = _mm512_add_ps(_mm512_load_ps(at), _mm512_load_ps(b_out_));
      const float most = _mm512_mask_reduce_max_ps(classes, logit);
      const __m512 above = _mm512_sub_ps(logit, _mm512_set1_ps(most));
      const __m512 e = _mm512_maskz_mov_ps(classes, exp(above));
      const float sum = _mm512_reduce_add_ps(e);
      const auto hit = static_cast<__mmask16>(1U << target);
      total += std::log(sum) - _mm512_mask_reduce_add_ps(hit, above);
      const __m512 p = _mm512_div_ps(e, _mm512_set1_ps(sum));
      _mm512_store_ps(at, _mm512_mul_ps(_mm512_mask_sub_ps(p, hit, p, _mm512_set1_ps(1.0F)), scale));
    }
    loss_ = static_cast<float>(total / static_cast<double>(B));
  }

  /// Computes the cotangent of the operand of relu.
  void hidden_backward() {
    for (Index j = 0; j < H; j += 16)
      transpose16(w_out_ + j * kOut, kOut, turned_ + j / kWidth * kOut * kWidth + j % kWidth, kWidth);
    for (Index j = 0; j < H; j += kWidth)
      panel_rows<2, false>(logits_, kOut, turned_ + j * kOut, B, kClasses, dh_ + j, H);
    for (Index i = 0; i < B * H; i += 16) {
      const __mmask16 open = _mm512_cmp_ps_mask(_mm512_load_ps(h_ + i), _mm512_setzero_ps(), _CMP_GT_OQ);
      _mm512_store_ps(dh_ + i, _mm512_maskz_mov_ps(open, _mm512_load_ps(dh_ + i)));
    }
  }

  void sum_rows(const float* g, Index N, float* to) const {
    for (Index j = 0; j < N; j += 16) {
      __m512 sum = _mm512_load_ps(g + j);
      for (Index b = 1; b < B; ++b) sum = _mm512_add_ps(sum, _mm512_load_ps(g + b * N + j));
      _mm512_store_ps(to + j, sum);
    }
  }

  Index D, H, B;  ///< D and H padded
  std::vector<std::int64_t> targets_;
  Buffer w_in_, b_in_, w_out_, b_out_, turned_, x_, h_, logits_, dh_, scratch_;
  Trained in_, b_of_in_, out_, b_of_out_;
  float loss_ = 0;
  int steps_ = 0;
};

}  // namespace limit
