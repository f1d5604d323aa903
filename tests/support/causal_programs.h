#pragma once
/// Random causal programs as layers that define `forward` alone, with their instructions as text.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ferrite/nn/layers/attention.h"
#include "ferrite/nn/layers/causal_conv1d.h"
#include "ferrite/nn/layers/convolution.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/layers/pooling.h"
#include "ferrite/nn/recurrent/gru.h"
#include "ferrite/nn/recurrent/lstm.h"
#include "ferrite/nn/recurrent/min_gru.h"
#include "ferrite/nn/recurrent/rnn.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/cumulative.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/pooling.h"

namespace causal_programs {

using namespace ferrite;

/// A random program over [B, T, D], each of whose instructions computes a value from earlier ones.
class Program final : public nn::Layer {
 public:
  explicit Program(std::uint64_t seed, Dtype dtype = Dtype::f32)
      : Layer({.seed = seed, .dtype = dtype}), seed_(seed), dtype_(dtype), random_(seed) {
    widths_ = {between(1, 4)};
    for (std::int64_t n = between(2, 9); n > 0; --n) add();
    if (once_in(2)) joined({of(), widths_.size() - 1});
  }

  std::string kind() const override { return "program"; }
  nn::StepInput step_input() const override { return {widths_[0], dtype_}; }
  const std::string& text() const { return text_; }
  std::int64_t width() const { return widths_[0]; }
  Tensor forward(const Tensor& x, const nn::Context&) const override {
    std::vector<Tensor> values = {x};
    for (const Instruction& f : instructions_) values.push_back(f(*this, values));
    return values.back();
  }
  std::unique_ptr<Layer> clone() const override {
    auto copy = std::make_unique<Program>(seed_, dtype_);
    nn::copy_values(*this, *copy);
    copy->take_after(*this);
    return copy;
  }

 private:
  using Instruction = std::function<Tensor(const Program&, const std::vector<Tensor>&)>;

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(std::int64_t n) { return between(1, n) == 1; }
  /// Returns the number of a random value, preferably a recent one.
  std::size_t of() {
    const std::int64_t n = std::ssize(widths_);
    return static_cast<std::size_t>(once_in(2) ? n - 1 : between(first_, n - 1));
  }
  void put(const std::string& word, std::int64_t width, Instruction f) {
    text_ += (text_.empty() ? "" : "; ") + word;
    widths_.push_back(width);
    instructions_.push_back(std::move(f));
  }
  std::string from(std::size_t v) const { return "(" + std::to_string(v) + ")"; }
  std::size_t weight(const Shape& shape) {
    weights_.push_back(parameter("p" + std::to_string(weights_.size()), shape, nn::init::uniform(-0.8, 0.8),
                                 nn::Init{.seed = seed_, .dtype = dtype_}));
    return weights_.size() - 1;
  }
  template <class L>
  std::size_t layer(std::unique_ptr<L> l) {
    adopt("layer" + std::to_string(layers_.size()), *l);
    layers_.push_back(std::move(l));
    return layers_.size() - 1;
  }
  nn::Init own() { return {.seed = seed_ + layers_.size(), .dtype = dtype_}; }

  void add() {
    const std::size_t v = of();
    const std::int64_t D = widths_[v];
    switch (between(0, 20)) {
      case 0: return put("tanh" + from(v), D, [v](const Program&, const auto& x) { return tanh(x[v]); });
      case 1: return put("sigmoid" + from(v), D, [v](const Program&, const auto& x) { return sigmoid(x[v]); });
      case 2: {
        const std::size_t w = weight({D});
        return put("bias" + from(v), D,
                   [v, w](const Program& p, const auto& x) { return x[v] + p.weights_[w].value(); });
      }
      case 3: {
        const std::int64_t N = between(1, 4);
        const std::size_t w = weight({D, N});
        return put("matmul" + from(v), N,
                   [v, w](const Program& p, const auto& x) { return matmul(x[v], p.weights_[w].value()); });
      }
      case 4:
      case 5: return delay(v);
      case 6:
      case 7: return convolution(v);
      case 8: return recurrence(v);
      case 9: return joined({v, of()});
      case 10: return sum_of(v, of());
      case 11: return put("softmax" + from(v), D, [v](const Program&, const auto& x) { return softmax(x[v], -1); });
      case 12:
        return put("layer_norm" + from(v), D, [v](const Program&, const auto& x) { return layer_norm(x[v], 1); });
      case 13: return put("mean" + from(v), 1, [v](const Program&, const auto& x) { return mean(x[v], {2}, true); });
      case 14: return window(v);
      case 15: return decay(v);
      case 16:
      case 17:
      case 18: return call(v);
      case 19: return stride(v);
      default:
        return put("cumsum of features" + from(v), D, [v](const Program&, const auto& x) { return cumsum(x[v], 2); });
    }
  }
  void delay(std::size_t v) {
    const std::int64_t n = between(1, 5), D = widths_[v];
    const std::size_t w = weight({D});
    const bool zero = once_in(2);
    put("delay " + std::to_string(n) + from(v), D, [=](const Program& p, const auto& x) {
      const std::int64_t B = x[v].shape()[0], T = x[v].shape()[1];
      const Tensor before = zero ? zeros({B, n, D}, x[v].dtype()) : expand(p.weights_[w].value(), {B, n, D});
      return slice(concat({before, x[v]}, 1), 1, 0, T);
    });
  }
  void convolution(std::size_t v) {
    const std::int64_t k = between(1, 3), d = between(1, 3), D = widths_[v], N = once_in(3) ? D : between(1, 3);
    const std::int64_t groups = N == D && once_in(2) ? D : 1;
    const std::size_t w = weight({N, D / groups, k}), b = weight({N});
    const std::int64_t behind = behind_of((k - 1) * d), before = (k - 1) * d - behind;
    put("conv k" + std::to_string(k) + " d" + std::to_string(d) + " g" + std::to_string(groups) + ahead(behind) +
            from(v),
        N, [=](const Program& p, const auto& x) {
          const Tensor padded = pad(transpose(x[v], 1, 2), {0, 0, before}, {0, 0, behind});
          return transpose(
              conv1d(padded, p.weights_[w].value(), p.weights_[b].value(), {.dilation = {d}, .groups = groups}), 1, 2);
        });
  }
  /// Returns how many of n frames of padding are put at the end: usually none.
  std::int64_t behind_of(std::int64_t n) { return once_in(4) ? between(0, n) : 0; }
  std::string ahead(std::int64_t n) const { return n > 0 ? " ahead " + std::to_string(n) : ""; }
  void recurrence(std::size_t v) {
    const std::int64_t D = widths_[v], H = between(1, 4), kind = between(0, 3);
    std::size_t l = 0;
    if (kind == 0) l = layer(std::make_unique<nn::Gru>(D, H, own()));
    if (kind == 1) l = layer(std::make_unique<nn::Lstm>(D, H, own()));
    if (kind == 2) l = layer(std::make_unique<nn::Rnn>(D, H, own()));
    if (kind == 3) l = layer(std::make_unique<nn::MinGru>(D, H, own()));
    put(layers_[l]->kind() + from(v), H, [=](const Program& p, const auto& x) { return (*p.layers_[l])(x[v]); });
  }
  /// Calls a layer with its own steps, some of which look ahead.
  void call(std::size_t v) {
    const std::int64_t D = widths_[v], kind = between(0, 3), k = between(1, 3), N = between(1, 4);
    std::size_t l = 0;
    if (kind == 0)
      l = layer(std::make_unique<nn::CausalConv1d>(
          nn::CausalConv1dOptions{.in_channels = D, .out_channels = N, .kernel_size = k, .dilation = between(1, 3)},
          own()));
    if (kind == 1)
      l = layer(std::make_unique<nn::Conv1d>(nn::ConvOptions{.in_channels = D,
                                                             .out_channels = N,
                                                             .kernel_size = {k},
                                                             .padding = ConvolutionPadding::same,
                                                             .channels_last = true},
                                             own()));
    if (kind == 2)
      l = layer(std::make_unique<nn::MultiheadAttention>(
          nn::MultiheadAttentionOptions{.embed_dim = D, .num_heads = 1, .causal = true, .capacity = 64}, own()));
    if (kind == 3)
      l = layer(std::make_unique<nn::Linear>(nn::LinearOptions{.in_features = D, .out_features = N}, own()));
    put(layers_[l]->kind() + from(v), kind == 2 ? D : N,
        [=](const Program& p, const auto& x) { return (*p.layers_[l])(x[v]); });
  }
  /// Applies a layer that gives fewer steps than it gets; earlier values are not used again.
  void stride(std::size_t v) {
    const std::int64_t D = widths_[v], s = between(2, 3), k = between(1, 4);
    std::size_t l = 0;
    if (strides_ == 0) return call(v);
    --strides_;
    if (once_in(2)) {
      strided_operation(v, s, k);
      first_ = std::ssize(widths_) - 1;
      return;
    }
    if (once_in(2)) {
      l = layer(std::make_unique<nn::CausalConv1d>(
          nn::CausalConv1dOptions{.in_channels = D, .out_channels = D, .kernel_size = k, .stride = s}, own()));
    } else {
      l = layer(std::make_unique<nn::MaxPool1d>(
          nn::MaxPoolLayerOptions{.kernel_size = {k}, .stride = {s}, .channels_last = true}));
    }
    put(layers_[l]->kind() + " stride " + std::to_string(s) + from(v), D,
        [=](const Program& p, const auto& x) { return (*p.layers_[l])(x[v]); });
    first_ = std::ssize(widths_) - 1;
  }
  void strided_operation(std::size_t v, std::int64_t s, std::int64_t k) {
    const std::int64_t D = widths_[v], kind = between(0, 2), before = between(0, k - 1), behind = between(0, k - 1);
    const std::size_t w = weight({D, D, k});
    put(std::string(kind == 0   ? "conv"
                    : kind == 1 ? "max"
                                : "every") +
            " of " + std::to_string(k) + " stride " + std::to_string(s) + " ahead " + std::to_string(k - 1 - before) +
            " behind " + std::to_string(behind) + from(v),
        D, [=](const Program& p, const auto& x) {
          if (kind == 2) return slice(x[v], 1, before, x[v].shape()[1], s);
          const Tensor padded = pad(transpose(x[v], 1, 2), {0, 0, before}, {0, 0, behind}, kind == 0 ? 0 : -2);
          return transpose(kind == 0 ? conv1d(padded, p.weights_[w].value(), {}, {.stride = {s}})
                                     : max_pool1d(padded, {k}, {.stride = {s}}),
                           1, 2);
        });
  }
  void joined(const std::vector<std::size_t>& v) {
    const std::size_t a = v[0], b = v[1];
    put("concat" + from(a) + from(b), widths_[a] + widths_[b], [a, b](const Program&, const auto& x) {
      return concat({x[a], x[b]}, 2);
    });
  }
  void sum_of(std::size_t a, std::size_t b) {
    const std::int64_t D = std::min(widths_[a], widths_[b]);
    put("sum" + from(a) + from(b), D,
        [=](const Program&, const auto& x) { return slice(x[a], 2, 0, D) + slice(x[b], 2, 0, D); });
  }
  void window(std::size_t v) {
    const std::int64_t k = between(2, 4), D = widths_[v];
    const bool most = once_in(2);
    const std::int64_t behind = behind_of(k - 1), before = k - 1 - behind;
    put((most ? "max of " : "mean of ") + std::to_string(k) + ahead(behind) + from(v), D,
        [=](const Program&, const auto& x) {
          const Tensor padded = pad(transpose(x[v], 1, 2), {0, 0, before}, {0, 0, behind}, most ? -2 : 0);
          return transpose(most ? max_pool1d(padded, {k}, {.stride = {1}}) : avg_pool1d(padded, {k}, {.stride = {1}}),
                           1, 2);
        });
  }
  void decay(std::size_t v) {
    const std::int64_t D = widths_[v];
    const std::size_t w = weight({D});
    put("linear_scan" + from(v), D, [=](const Program& p, const auto& x) {
      return linear_scan(expand(p.weights_[w].value(), x[v].shape()), x[v]);
    });
  }

  std::uint64_t seed_;
  Dtype dtype_;
  std::mt19937_64 random_;
  std::string text_;
  std::vector<std::int64_t> widths_;
  std::int64_t first_ = 0;    ///< first of the values that may be used
  std::int64_t strides_ = 2;  ///< number of strides that may still be added
  std::vector<Parameter> weights_;
  std::vector<std::unique_ptr<nn::Layer>> layers_;
  std::vector<Instruction> instructions_;
};

}  // namespace causal_programs
