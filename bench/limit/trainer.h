#pragma once
/// The training step of a GRU: gates are kept, then replaced by their cotangents; each weight gradient is one product
/// over all steps; Adam updates the panels in place. The biases of r and z, which PyTorch keeps twice, are one here.
#include <cmath>
#include <vector>

#include "adam.h"
#include "gru.h"

namespace limit {

class Trainer final : public Training {
 public:
  Trainer(const Sizes& s, const Weights& w, const float* input, std::vector<std::int64_t> targets)
      : sizes_(s),
        gru_(s.D, s.H),
        D(gru_.D),
        H(gru_.H),
        T(s.T),
        B(s.B),
        targets_(std::move(targets)),
        w_out_(kClasses * H),
        b_out_(16),
        x_(T * B * D),
        hs_((T + 1) * B * H),
        i_(T * B * 3 * H),
        saved_(T * B * 4 * H),
        di_(T * B * 3 * H),
        dg_(T * B * 3 * H),
        dh_(B * H),
        turned_(3 * H * H),
        scratch_(kRows * (3 * H + 8)),
        ih_(gru_.w_ih, 3 * H * D),
        hh_(gru_.w_hh, 3 * H * H),
        b_(gru_.b, 3 * H),
        b_hn_(gru_.b_hn, H),
        out_(w_out_, kClasses * H),
        b_of_out_(b_out_, 16) {
    gru_.load(w, s.D, s.H);
    for (Index k = 0; k < s.H; ++k)
      for (Index c = 0; c < kClasses; ++c) w_out_[c * H + k] = w.w_out[k * kClasses + c];
    std::copy_n(w.b_out, kClasses, static_cast<float*>(b_out_));
    for (Index b = 0; b < B; ++b)
      for (Index t = 0; t < T; ++t) std::copy_n(input + (b * T + t) * s.D, s.D, x_ + (t * B + b) * D);
  }

  void run() override {
    gru_.forward<true>(x_, T, B, hs_, i_, saved_);
    begin_backward();
    if (B > 1) turn();
    for (Index t = T - 1; t >= 0; --t) {
      gates_backward(t);
      if (t > 0) state_backward(dg_ + t * B * 3 * H);
    }
    product_of_transposed(x_, T * B, D, di_, 3 * H, ih_.grad, scratch_);
    product_of_transposed(hs_, T * B, H, dg_, 3 * H, hh_.grad, scratch_);
    sum_biases();
    ++steps_;
    for (Trained* p : {&ih_, &hh_, &b_, &b_hn_, &out_, &b_of_out_}) p->update(steps_);
  }

  float loss() const override { return loss_; }
  float grad_ih(std::int64_t k, std::int64_t column) const override { return ih_.grad[place(sizes_.H, D, k, column)]; }
  float grad_hh(std::int64_t k, std::int64_t column) const override { return hh_.grad[place(sizes_.H, H, k, column)]; }
  float grad_out(std::int64_t k, std::int64_t c) const override { return out_.grad[c * H + k]; }

 private:
  /// Computes the loss, its gradients with respect to the linear layer, and the cotangent of the last state.
  void begin_backward() {
    std::fill_n(static_cast<float*>(out_.grad), kClasses * H, 0.0F);
    std::fill_n(static_cast<float*>(b_of_out_.grad), 16, 0.0F);
    double total = 0;
    for (Index b = 0; b < B; ++b) {
      float p[kClasses];
      probabilities(hs_ + (T * B + b) * H, p);
      const auto target = static_cast<Index>(targets_[static_cast<std::size_t>(b)]);
      total -= std::log(p[target]);
      p[target] -= 1;
      through_linear(p, hs_ + (T * B + b) * H, dh_ + b * H);
    }
    loss_ = static_cast<float>(total / static_cast<double>(B));
  }

  void probabilities(const float* h, float* p) const {
    float most = -1e30F;
    for (Index c = 0; c < kClasses; ++c) {
      __m512 a = _mm512_setzero_ps();
      for (Index k = 0; k < H; k += 16)
        a = _mm512_fmadd_ps(_mm512_load_ps(h + k), _mm512_load_ps(w_out_ + c * H + k), a);
      p[c] = _mm512_reduce_add_ps(a) + b_out_[c];
      most = std::max(most, p[c]);
    }
    float sum = 0;
    for (Index c = 0; c < kClasses; ++c) sum += p[c] = std::exp(p[c] - most);
    for (Index c = 0; c < kClasses; ++c) p[c] /= sum;
  }

  void through_linear(const float* d_logits, const float* h, float* d) {
    std::fill_n(d, H, 0.0F);
    for (Index c = 0; c < kClasses; ++c) {
      const float g = d_logits[c] / static_cast<float>(B);
      b_of_out_.grad[c] += g;
      const __m512 v = _mm512_set1_ps(g);
      float* const dw = out_.grad + c * H;
      for (Index k = 0; k < H; k += 16) {
        _mm512_store_ps(d + k, _mm512_fmadd_ps(v, _mm512_load_ps(w_out_ + c * H + k), _mm512_load_ps(d + k)));
        _mm512_store_ps(dw + k, _mm512_fmadd_ps(v, _mm512_load_ps(h + k), _mm512_load_ps(dw + k)));
      }
    }
  }

  /// Transposes the panels of w_hh into panels of 32 columns (the last one perhaps 16).
  void turn() {
    for (Index p = 0; p < H; p += 32) {
      const Index width = std::min<Index>(32, H - p);
      for (Index j = 0; j < H / 16; ++j)
        for (Index g = 0; g < 3; ++g)
          for (Index q = 0; q < width; q += 16)
            transpose16(gru_.w_hh + (j * H + p + q) * kPanel + g * 16, kPanel,
                        turned_ + p * 3 * H + (j * kPanel + g * 16) * width + q, width);
    }
  }

  void gates_backward(Index t) {
    const __m512 one = _mm512_set1_ps(1.0F);
    for (Index b = 0; b < B; ++b) {
      const float* s = saved_ + (t * B + b) * 4 * H;
      const float* before = hs_ + (t * B + b) * H;
      float* di = di_ + (t * B + b) * 3 * H;
      float* dg = dg_ + (t * B + b) * 3 * H;
      float* dh = dh_ + b * H;
      for (Index j = 0; j < H / 16; ++j, s += 64, di += kPanel, dg += kPanel, dh += 16, before += 16) {
        const __m512 r = _mm512_load_ps(s), z = _mm512_load_ps(s + 16), n = _mm512_load_ps(s + 32);
        const __m512 d = _mm512_load_ps(dh), rest = _mm512_sub_ps(one, z);
        const __m512 dn = _mm512_mul_ps(_mm512_mul_ps(d, rest), _mm512_fnmadd_ps(n, n, one));
        const __m512 dz =
            _mm512_mul_ps(_mm512_mul_ps(d, _mm512_sub_ps(_mm512_load_ps(before), n)), _mm512_mul_ps(z, rest));
        const __m512 dr =
            _mm512_mul_ps(_mm512_mul_ps(dn, _mm512_load_ps(s + 48)), _mm512_mul_ps(r, _mm512_sub_ps(one, r)));
        _mm512_store_ps(di, dr);
        _mm512_store_ps(di + 16, dz);
        _mm512_store_ps(di + 32, dn);
        _mm512_store_ps(dg, dr);
        _mm512_store_ps(dg + 16, dz);
        _mm512_store_ps(dg + 32, _mm512_mul_ps(dn, r));
        _mm512_store_ps(dh, _mm512_mul_ps(d, z));
      }
    }
  }

  /// Adds dg w_hh^T to dh.
  void state_backward(const float* dg) {
    if (B == 1) return row_backward(dg);
    for (Index p = 0; p < H; p += 32) {
      const float* w = turned_ + p * 3 * H;
      if (H - p >= 32) {
        panel_rows<2, true>(dg, 3 * H, w, B, 3 * H, dh_ + p, H);
      } else {
        panel_rows<1, true>(dg, 3 * H, w, B, 3 * H, dh_ + p, H);
      }
    }
  }

  /// Adds dg w_hh^T to dh for one row: products of rows, on the panels of the forward pass.
  void row_backward(const float* dg) {
    for (Index k = 0; k < H; k += 8) {
      __m512 a[8];
#pragma GCC unroll 8
      for (Index u = 0; u < 8; ++u) a[u] = _mm512_setzero_ps();
      for (Index j = 0; j < H / 16; ++j) {
        const __m512 g0 = _mm512_load_ps(dg + j * kPanel);
        const __m512 g1 = _mm512_load_ps(dg + j * kPanel + 16);
        const __m512 g2 = _mm512_load_ps(dg + j * kPanel + 32);
        const float* w = gru_.w_hh + (j * H + k) * kPanel;
#pragma GCC unroll 8
        for (Index u = 0; u < 8; ++u) {
          a[u] = _mm512_fmadd_ps(g0, _mm512_load_ps(w + u * kPanel), a[u]);
          a[u] = _mm512_fmadd_ps(g1, _mm512_load_ps(w + u * kPanel + 16), a[u]);
          a[u] = _mm512_fmadd_ps(g2, _mm512_load_ps(w + u * kPanel + 32), a[u]);
        }
      }
#pragma GCC unroll 8
      for (Index u = 0; u < 8; ++u) dh_[k + u] += _mm512_reduce_add_ps(a[u]);
    }
  }

  void sum_biases() {
    for (Index j = 0; j < H / 16; ++j) {
      __m512 sum[4] = {};
      for (Index q = 0; q < T * B; ++q) {
        const float* di = di_ + q * 3 * H + j * kPanel;
#pragma GCC unroll 3
        for (Index g = 0; g < 3; ++g) sum[g] = _mm512_add_ps(sum[g], _mm512_load_ps(di + g * 16));
        sum[3] = _mm512_add_ps(sum[3], _mm512_load_ps(dg_ + q * 3 * H + j * kPanel + 32));
      }
      for (Index g = 0; g < 3; ++g) _mm512_store_ps(b_.grad + j * kPanel + g * 16, sum[g]);
      _mm512_store_ps(b_hn_.grad + j * 16, sum[3]);
    }
  }

  Sizes sizes_;
  Gru gru_;
  Index D, H, T, B;  ///< D and H padded
  std::vector<std::int64_t> targets_;
  Buffer w_out_, b_out_, x_, hs_, i_, saved_, di_, dg_, dh_, turned_, scratch_;
  Trained ih_, hh_, b_, b_hn_, out_, b_of_out_;
  float loss_ = 0;
  int steps_ = 0;
};

}  // namespace limit
