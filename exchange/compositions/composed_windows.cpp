/// Operations on windows as slices, products and sums, of which the adjoints are the gradients.
#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/compositions/compositions.h"
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

Tensors convolution(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<ConvolutionAttrs>();
  return {plus_bias(convolved(in[0], in[1], a.size, a), in)};
}

/// The extents of the axes of space.
Shape space(const Shape& s) {
  Shape out;
  for (int i = 2; i < s.rank(); ++i) out.push_back(s[i]);
  return out;
}

Tensors convolution_transposed(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<ConvolutionAttrs>();
  Tape tape;
  const Tensor x = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
  const Tensor y = convolved(x, in[1], space(in[0].shape()), a);
  return {plus_bias(tape.grad(y, {x}, {}, in[0])[0], in)};
}

Tensors convolution_weights(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<ConvolutionAttrs>();
  Tape tape;
  const Tensor w = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
  const Tensor y = convolved(in[0], w, space(in[1].shape()), a);
  return {tape.grad(y, {w}, {}, in[1])[0]};
}

using ferrite::detail::ResampleAttrs;
using ferrite::detail::UnfoldAttrs;
using ferrite::detail::UnfoldAxisAttrs;

Tensor unfolded(const Tensor& x, const UnfoldAttrs& a, const Shape& columns) {
  const ConvolutionAttrs windows{.stride = a.stride, .before = a.before, .dilation = a.dilation, .size = a.size};
  Tensors taps;
  for_each_index(a.kernel, [&](const Shape& tap) { taps.push_back(read_by_tap(x, tap, a.size, windows)); });
  return reshape(stack(std::span<const Tensor>(taps.data(), taps.size()), 2), columns);
}

Tensors unfold_windows(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<UnfoldAttrs>();
  return {unfolded(in[0], a, c.out[0].shape)};
}

Tensors fold_windows(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<UnfoldAttrs>();
  Tape tape;
  const Tensor x = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
  return {tape.grad(unfolded(x, a, in[0].shape()), {x}, {}, in[0])[0]};
}

Tensors unfold_axis(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<UnfoldAxisAttrs>();
  Tensors parts;
  const std::int64_t windows = c.out[0].shape[a.axis];
  for (std::int64_t k = 0; k < a.window; ++k)
    parts.push_back(slice(in[0], a.axis, k, k + (windows - 1) * a.step + 1, a.step));
  return {stack(std::span<const Tensor>(parts.data(), parts.size()), -1)};
}

/// Every tap of all places at once, times its weights.
Tensor resampled(const Tensor& x, const ResampleAttrs& a) {
  Tensor y;
  for (int k = 0; k < ferrite::detail::resample_taps(a, 0).count; ++k) {
    std::vector<std::int64_t> at;
    std::vector<double> weights;
    for (std::int64_t i = 0; i < a.to; ++i) {
      const ferrite::detail::ResampleTaps t = ferrite::detail::resample_taps(a, i);
      at.push_back(t.at[k]);
      weights.push_back(t.weight[k]);
    }
    Shape along = Shape::filled(x.rank(), 1);
    along[a.axis] = a.to;
    const Tensor read = index_select(x, a.axis, Tensor::from(at, {a.to}));
    const Tensor part = read * reshape(cast(Tensor::from(weights, {a.to}), x.dtype()), along);
    y = y.defined() ? y + part : part;
  }
  return y;
}

Tensors resample(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<ResampleAttrs>();
  return {resampled(in[0], a)};
}

Tensors resample_gradient(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<ResampleAttrs>();
  Tape tape;
  const Tensor x = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
  return {tape.grad(resampled(x, a), {x}, {}, in[0])[0]};
}

}  // namespace

Compositions window_compositions() {
  static constexpr NamedComposition list[] = {{"convolution", convolution},
                                              {"convolution_transposed", convolution_transposed},
                                              {"convolution_weights", convolution_weights},
                                              {"unfold_windows", unfold_windows},
                                              {"fold_windows", fold_windows},
                                              {"unfold_axis", unfold_axis},
                                              {"resample", resample},
                                              {"resample_gradient", resample_gradient}};
  return list;
}

}  // namespace ferrite::exchange::detail
