/// The causal convolution over time, as a matrix product of the inputs under all taps.
#include "ferrite/nn/layers/causal_conv1d.h"

#include <cmath>
#include <limits>

namespace ferrite::nn {
namespace {

void check(const CausalConv1dOptions& o) {
  const auto refuse = [](const std::string& what) { throw ValueError("causal_conv1d: " + what); };
  if (o.in_channels < 1 || o.out_channels < 1 || o.kernel_size < 1 || o.dilation < 1 || o.groups < 1)
    refuse("channels, kernel_size, dilation and groups must be positive, got " + std::to_string(o.in_channels) +
           " to " + std::to_string(o.out_channels) + ", " + std::to_string(o.kernel_size) + ", " +
           std::to_string(o.dilation) + " and " + std::to_string(o.groups));
  if (o.in_channels % o.groups != 0 || o.out_channels % o.groups != 0)
    refuse("groups must divide the numbers of channels, got " + std::to_string(o.groups) + " groups of " +
           std::to_string(o.in_channels) + " to " + std::to_string(o.out_channels));
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (o.kernel_size - 1 > kMost / o.dilation)
    refuse("the first tap must be less than 2^31 steps back, got kernel_size " + std::to_string(o.kernel_size) +
           " with dilation " + std::to_string(o.dilation));
}

}  // namespace

CausalConv1d::CausalConv1d(const CausalConv1dOptions& o, const Init& init) : LayerOf(o, init) {
  check(o);
  const std::int64_t I = o.in_channels / o.groups;
  const double bound = 1 / std::sqrt(static_cast<double>(I) * static_cast<double>(o.kernel_size));
  const Fill fill = init::uniform(-bound, bound);
  weight = parameter("weight", {o.out_channels, I, o.kernel_size}, fill, init);
  if (o.bias) bias = parameter("bias", {o.out_channels}, fill, init);
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
  if (context.carry || context.reset_mask.defined())
    throw ValueError("causal_conv1d: takes neither a carry nor resets; stream it, or give it whole sequences");
  const Tensor padded = o.past() > 0 ? concat({zeros({B, o.past(), o.in_channels}, x.dtype()), x}, 1) : x;
  Tensors taps;
  for (std::int64_t k = 0; k < o.kernel_size; ++k) taps.push_back(slice(padded, 1, k * o.dilation, k * o.dilation + T));
  return convolved(taps);
}

std::vector<StepState> CausalConv1d::states(const StepRows& in) const {
  if (options().past() == 0) return {};
  return {{.name = "past", .shape = {options().past(), in.batch, in.width}, .dtype = in.dtype, .rows = 1}};
}

StepResult CausalConv1d::step(const Tensor& x, const Tensors& states) const {
  const CausalConv1dOptions& o = options();
  Tensors taps, next;
  for (std::int64_t k = 0; k + 1 < o.kernel_size; ++k) taps.push_back(select(states[0], 0, k * o.dilation));
  taps.push_back(x);
  if (!states.empty()) next.push_back(concat({slice(states[0], 0, 1), unsqueeze(x, 0)}, 0));
  return {convolved(taps), next};
}

/// What the taps, kernel_size times [..., in_channels], give [..., out_channels]: a product of the inputs under all
/// taps and the weights where they lie, or of every channel by itself, which would be a product of vectors, element by
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
  Shape wide = shape;
  wide[-1] = o.in_channels * K;
  const Tensor inputs = reshape(stack(std::span<const Tensor>(taps.data(), taps.size()), -1), wide);
  if (G == 1) return with_bias(matmul(inputs, transpose(reshape(weight, {O, I * K}))));
  const std::int64_t rows = taps[0].numel() / o.in_channels;
  const Tensor by_group = permute(reshape(inputs, {rows, G, I * K}), {1, 0, 2});
  const Tensor products = matmul(by_group, transpose(reshape(weight, {G, O, I * K})));  // [G, rows, O]
  return with_bias(reshape(permute(products, {1, 0, 2}), shape));
}

}  // namespace ferrite::nn
