/// Lowering of operations on windows: written as slices, products and sums, of which the adjoints are the gradients.
#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/stablehlo/lowering.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::for_each_index;

/// The elements of x that one tap reads: x with zeros around, sliced by the strides.
Tensor read_by_tap(const Tensor& x, const Shape& tap, const Shape& size, const ConvolutionAttrs& a) {
  Shape before = Shape::filled(x.rank(), 0), after = before;
  for (int i = 0; i < size.rank(); ++i) {
    const std::int64_t at = tap[i] * a.dilation[i] - a.before[i];
    before[i + 2] = -at;  // crops where the tap reads from a later element on
    after[i + 2] = (size[i] - 1) * a.stride[i] + 1 + at - x.shape()[i + 2];
  }
  Tensor y = pad(x, before, after);
  for (int i = 0; i < size.rank(); ++i) y = slice(y, i + 2, 0, kEnd, a.stride[i]);
  return y;
}

/// As a product of the weights and what all taps read.
Tensor convolved(const Tensor& x, const Tensor& w, const Shape& size, const ConvolutionAttrs& a) {
  Shape kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.shape()[i]);
  Tensors taps;
  for_each_index(kernel, [&](const Shape& tap) { taps.push_back(read_by_tap(x, tap, size, a)); });
  const std::int64_t N = x.shape()[0], G = a.groups, inner = w.shape()[1], outer = w.shape()[0] / G;
  const std::int64_t terms = inner * kernel.numel(), positions = size.numel();
  const Tensor read = reshape(stack(std::span<const Tensor>(taps.data(), taps.size()), 2), {N, G, terms, positions});
  Shape shape{N, G * outer};
  for (const std::int64_t e : size) shape.push_back(e);
  return reshape(matmul(reshape(w, {G, outer, terms}), read), shape);
}

Tensor plus_bias(const Tensor& y, const Tensors& in) {
  if (in.size() < 3) return y;
  Shape channels = Shape::filled(y.rank(), 1);
  channels[1] = -1;
  return y + reshape(in[2], channels);
}

HloValues convolution(HloBuilder& b, const HloCall& c) {
  const auto a = c.as<ConvolutionAttrs>();
  return lower_traced(
      b, [&](const Tensors& in) -> Tensors { return {plus_bias(convolved(in[0], in[1], a.size, a), in)}; }, c.in);
}

/// The extents of the axes of space.
Shape space(const Shape& s) {
  Shape out;
  for (int i = 2; i < s.rank(); ++i) out.push_back(s[i]);
  return out;
}

HloValues convolution_transposed(HloBuilder& b, const HloCall& c) {
  const auto a = c.as<ConvolutionAttrs>();
  const auto adjoint = [&](const Tensors& in) -> Tensors {
    Tape tape;
    const Tensor x = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
    const Tensor y = convolved(x, in[1], space(in[0].shape()), a);
    return {plus_bias(tape.grad(y, {x}, {}, in[0])[0], in)};
  };
  return lower_traced(b, adjoint, c.in);
}

HloValues convolution_weights(HloBuilder& b, const HloCall& c) {
  const auto a = c.as<ConvolutionAttrs>();
  const auto adjoint = [&](const Tensors& in) -> Tensors {
    Tape tape;
    const Tensor w = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
    const Tensor y = convolved(in[0], w, space(in[1].shape()), a);
    return {tape.grad(y, {w}, {}, in[1])[0]};
  };
  return lower_traced(b, adjoint, c.in);
}

}  // namespace

HloFamily hlo_windows() {
  static constexpr NamedHloLowering list[] = {{"convolution", convolution},
                                              {"convolution_transposed", convolution_transposed},
                                              {"convolution_weights", convolution_weights}};
  return list;
}

}  // namespace ferrite::exchange::detail
