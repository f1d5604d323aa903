/// What the layers of an xLSTM share: products and norms of heads, the convolution and its memory.
#include "ferrite/nn/recurrent/detail/xlstm.h"

#include <cmath>

#include "ferrite/tensor/cumulative.h"

namespace ferrite::nn::detail {

Tensor headwise(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const std::int64_t H = weight.shape()[0], O = weight.shape()[1], I = weight.shape()[2];
  const Tensor rows = transpose(reshape(x, {-1, H, I}), 0, 1);
  Shape shape = x.shape();
  shape[-1] = H * O;
  const Tensor y = reshape(transpose(matmul(rows, transpose(weight)), 0, 1), shape);
  return bias.defined() ? y + bias : y;
}

Tensor head_norm(const Tensor& x, std::int64_t heads, const Tensor& weight) {
  Shape by_head = x.shape();
  by_head[-1] = heads;
  by_head.push_back(x.shape()[-1] / heads);
  const Tensor y = reshape(layer_norm(reshape(x, by_head)), x.shape());
  return weight.defined() ? y * (1 + weight) : y;
}

Tensor last_resets(const SequenceOptions& o) {
  if (!o.resets.defined()) return {};
  const Tensor steps = arange(o.resets.shape()[1]);
  Tensor resets = o.resets;
  if (o.lengths.defined()) resets = resets && lt(steps, unsqueeze(o.lengths, 1));
  return cummax(where(resets, steps, full({}, kNoReset, Dtype::i64)), 1).values;
}

namespace {

/// The sum over k of tap k, each [..., C], times the weights of k, + bias.
Tensor sum_of_taps(const Tensors& taps, const Tensor& weight, const Tensor& bias) {
  const Tensors w = unbind(contiguous(transpose(select(weight, 1, 0))), 0);  // [C] each
  Tensor y = taps[0] * w[0];
  for (std::size_t k = 1; k < taps.size(); ++k) y = y + taps[k] * w[k];
  return y + bias;
}

}  // namespace

Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const SequenceOptions& o,
                   const Tensor& resets, Tensor& past) {
  const std::int64_t B = x.shape()[0], T = x.shape()[1], C = x.shape()[2], before = weight.shape()[2] - 1;
  if (before == 0) return sum_of_taps({x}, weight, bias);
  const Tensor padded = concat({past, x}, 1);
  Tensors taps;
  for (std::int64_t at = 0; at <= before; ++at) {
    const Tensor tap = slice(padded, 1, at, at + T);
    const bool cut = resets.defined() && at < before;
    taps.push_back(cut ? where(unsqueeze(lt(arange(T) - (before - at), resets), 2), 0, tap) : tap);
  }
  if (o.lengths.defined()) {
    const Tensor steps = unsqueeze(o.lengths, 1) + arange(before);  // [B, K - 1], those of `padded`
    past = gather(padded, 1, expand(unsqueeze(steps, 2), {B, before, C}));
    if (resets.defined())
      past = where(unsqueeze(lt(steps - before, gather(resets, 1, unsqueeze(o.lengths - 1, 1))), 2), 0, past);
  } else {
    past = slice(padded, 1, T);
    if (resets.defined())
      past = where(unsqueeze(lt(arange(before) + (T - before), slice(resets, 1, T - 1)), 2), 0, past);
  }
  return sum_of_taps(taps, weight, bias);
}

Tensor causal_conv_step(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& past) {
  if (!past.defined()) return sum_of_taps({x}, weight, bias);
  const Tensor padded = concat({past, unsqueeze(x, 1)}, 1);
  past = slice(padded, 1, 1);
  return sum_of_taps(unbind(padded, 1), weight, bias);
}

Fill conv_fill(std::int64_t k) {
  const double bound = 1 / std::sqrt(static_cast<double>(k));
  return init::uniform(-bound, bound);
}

Fill small_fill(std::int64_t n) { return init::normal(0, std::sqrt(2 / (5 * static_cast<double>(n)))); }

void check_least(const char* layer, const char* option, std::int64_t value, std::int64_t least) {
  if (value < least)
    throw ValueError(std::string(layer) + ": " + option + " must be at least " + std::to_string(least) + ", got " +
                     std::to_string(value));
}

void check_probability(const char* layer, const char* option, double value) {
  if (!(value >= 0 && value <= 1))
    throw ValueError(std::string(layer) + ": " + option + " must lie in [0, 1], got " + Scalar(value).str());
}

}  // namespace ferrite::nn::detail
