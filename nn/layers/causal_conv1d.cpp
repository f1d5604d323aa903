/// The causal convolution over time, as a matrix product of the inputs under all taps.
#include "ferrite/nn/layers/causal_conv1d.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/nn/carry.h"
#include "ferrite/nn/detail/lengths.h"

namespace ferrite::nn {
namespace {

void check(const CausalConv1dOptions& o) {
  const auto refuse = [](const std::string& what) { throw ValueError("causal_conv1d: " + what); };
  if (o.in_channels < 1 || o.out_channels < 1 || o.kernel_size < 1 || o.dilation < 1 || o.stride < 1 || o.groups < 1)
    refuse("channels, stride, kernel_size, dilation and groups must be positive, got " + std::to_string(o.in_channels) +
           " to " + std::to_string(o.out_channels) + ", " + std::to_string(o.stride) + ", " +
           std::to_string(o.kernel_size) + ", " + std::to_string(o.dilation) + " and " + std::to_string(o.groups));
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    refuse("groups must divide the numbers of channels, got " + std::to_string(o.groups) + " groups of " +
           std::to_string(o.in_channels) + " to " + std::to_string(o.out_channels));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (o.kernel_size - 1 > kMost / o.dilation)
    refuse("the first tap must be less than 2^31 steps back, got kernel_size " + std::to_string(o.kernel_size) +
           " with dilation " + std::to_string(o.dilation));
}

/// i64 [B, T]: the last step up to each one before which the mask is set, at least of those `reach` steps back; -reach
/// where there is none. Each round doubles the number of steps that have been looked at.
Tensor last_resets(const Tensor& mask, std::int64_t B, std::int64_t T, std::int64_t reach) {
  if (mask.dtype() != Dtype::boolean || mask.shape() != Shape{B, T})
    throw ShapeError("causal_conv1d: expects a reset mask bool[" + std::to_string(B) + ", " + std::to_string(T) +
                     "], got " + mask.spec().str());
  Tensor last = where(mask, arange(T), full({}, -reach, Dtype::i64));
  for (std::int64_t n = 1; n < std::min(reach, T); n *= 2)
    last = maximum(last, concat({full({B, n}, -reach, Dtype::i64), slice(last, 1, 0, T - n)}, 1));
  return last;
}

}  // namespace

CausalConv1d::CausalConv1d(const CausalConv1dOptions& o, const Init& init) : LayerOf(o, init) {
  check(o);
  const std::int64_t I = o.in_channels / o.groups;
  const double bound = 1 / std::sqrt(static_cast<double>(I) * static_cast<double>(o.kernel_size));
  const Fill fill = init::uniform(-bound, bound);
  weight = parameter("weight", {o.out_channels, I, o.kernel_size}, fill, init);
  if (o.bias) bias = parameter("bias", {o.out_channels}, fill, init);
  if (o.past() > 0) carries("past", o.past(), o.in_channels, init.dtype);
  setting("stride", static_cast<double>(o.stride)), setting("dilation", static_cast<double>(o.dilation));
  setting("padding_left", static_cast<double>(o.past())), setting("padding_right", 0);
}

Tensor CausalConv1d::forward(const Tensor& x, const Context& context) const {
  const CausalConv1dOptions& o = options();
  if (x.rank() != 3 || x.shape()[2] != o.in_channels)
    throw ShapeError("causal_conv1d: expects [B, T, " + std::to_string(o.in_channels) + "], got " + x.shape().str());
  const std::int64_t B = x.shape()[0], T = x.shape()[1];
  if (T == 0) throw ShapeError("causal_conv1d: the sequence has no steps: " + x.shape().str());
  if (x.dtype() != weight.dtype())
    throw DtypeError("causal_conv1d: the weights are " + std::string(name_of(weight.dtype())) + ", got " +
                     x.spec().str() + "; cast the input");
  const std::int64_t past = o.past();
  if (context.carry && o.stride > 1 && (T % o.stride != 0 || context.lengths.defined()))
    throw ValueError("causal_conv1d: pieces of " + std::to_string(T) + " steps end within a stride of " +
                     std::to_string(o.stride) + "; cut at its multiples, rows of one length together");
  if (context.lengths.defined() && (past == 0 || !context.carry))  // no output depends on them: they are refused, too
    (void)detail::checked_lengths("causal_conv1d: a length of", context.lengths, B, T, 0);
  if (past == 0) return convolved({slice(x, 1, 0, T, o.stride)});
  const Tensor before = context.carry ? transpose(context.carry->states_of(*this, B)[0], 0, 1)
                                      : zeros({B, past, o.in_channels}, x.dtype());
  const Tensor padded = concat({before, x}, 1);
  const Tensor last = context.reset_mask.defined() ? last_resets(context.reset_mask, B, T, past) : Tensor();
  Tensors taps;
  for (std::int64_t at = 0; at <= past; at += o.dilation) {
    const Tensor tap = slice(padded, 1, at, at + T, o.stride);
    const bool cut = last.defined() && at < past;
    const auto of_outputs = [&](const Tensor& t, std::int64_t axis) { return slice(t, axis, 0, T, o.stride); };
    taps.push_back(cut ? where(unsqueeze(lt(of_outputs(arange(T), 0) - (past - at), of_outputs(last, 1)), 2), 0, tap)
                       : tap);
  }
  if (context.carry) carry_on(padded, last, context);
  return convolved(taps);
}

/// Leaves the last steps of `padded` [B, past + T, C], of each row up to its length, to the next piece: zeros where
/// they lie before the row's last reset.
void CausalConv1d::carry_on(const Tensor& padded, const Tensor& last_reset, const Context& context) const {
  const std::int64_t past = options().past(), B = padded.shape()[0], T = padded.shape()[1] - past;
  const bool ragged = context.lengths.defined();
  const Tensor lengths =
      ragged ? detail::checked_lengths("causal_conv1d: a length of", context.lengths, B, T) : full({B}, T, Dtype::i64);
  const Tensor steps = unsqueeze(lengths, 1) + arange(past);  // [B, past], those of `padded`
  Tensor next =
      ragged ? gather(padded, 1, expand(unsqueeze(steps, 2), {B, past, padded.shape()[2]})) : slice(padded, 1, T);
  if (last_reset.defined()) {
    const Tensor reset = gather(last_reset, 1, unsqueeze(lengths - 1, 1));  // [B, 1]
    next = where(unsqueeze(lt(steps - past, reset), 2), 0, next);
  }
  context.carry->states_of(*this, B)[0].assign(contiguous(transpose(next, 0, 1)));
}

std::optional<StepWindow> CausalConv1d::window() const {
  const CausalConv1dOptions& o = options();
  return StepWindow{.taps = o.kernel_size, .dilation = o.dilation, .stride = o.stride, .before = o.past()};
}

Tensor CausalConv1d::over(const Tensor& x) const {
  Tensors taps;
  for (std::int64_t k = 0; k < options().kernel_size; ++k) taps.push_back(select(x, 1, k));
  return convolved(taps);
}

/// What the taps, kernel_size times [..., in_channels], give [..., out_channels]: a product of the inputs under all
/// taps, side by side, and the weights, or of every channel by itself, which would be a product of vectors, element by
/// element.
Tensor CausalConv1d::convolved(const Tensors& taps) const {
  const CausalConv1dOptions& o = options();
  const std::int64_t K = o.kernel_size, G = o.groups, I = o.in_channels / G, O = o.out_channels / G;
  Shape shape = taps[0].shape();
  shape[-1] = o.out_channels;
  const auto with_bias = [&](const Tensor& y) { return bias.defined() ? y + bias : y; };
  if (I == 1 && G > 1) {
    const Tensor w = reshape(weight, {G, O, K});
    Tensor y = unsqueeze(taps[0], -1) * select(w, 2, 0);  // [..., G, O]
    for (std::int64_t k = 1; k < K; ++k) y = y + unsqueeze(taps[static_cast<std::size_t>(k)], -1) * select(w, 2, k);
    return with_bias(reshape(y, shape));
  }
  const Tensor inputs = concat(std::span<const Tensor>(taps.data(), taps.size()), -1);
  if (G == 1) return with_bias(matmul(inputs, reshape(permute(weight, {2, 1, 0}), {K * I, O})));
  const std::int64_t rows = taps[0].numel() / o.in_channels;
  const Tensor by_group = reshape(permute(reshape(inputs, {rows, K, G, I}), {2, 0, 1, 3}), {G, rows, K * I});
  const Tensor weights = reshape(permute(reshape(weight, {G, O, I, K}), {0, 3, 2, 1}), {G, K * I, O});
  return with_bias(reshape(permute(matmul(by_group, weights), {1, 0, 2}), shape));
}

template class LayerOf<CausalConv1d, CausalConv1dOptions, Windowed>;

}  // namespace ferrite::nn
