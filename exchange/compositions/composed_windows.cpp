/// Operations on windows as slices, products and sums, of which the adjoints are the gradients.
#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::for_each_index;

/// The elements of x that one tap of windows reads: x with zeros around, sliced by the strides.
Tensor read_by_tap(const Tensor& x, const Shape& tap, const Shape& kernel, const ConvolutionAttrs& a,
                   const Shape& size) {
  Shape before = Shape::filled(x.rank(), 0), after = before;
  for (int i = 0; i < size.rank(); ++i) {
    const std::int64_t behind =
        space_behind(x.shape()[i + 2], kernel[i], a.stride[i], a.dilation[i], a.before[i], size[i]);
    before[i + 2] = a.before[i] - tap[i] * a.dilation[i];  // crops where the tap reads from a later element on
    after[i + 2] = behind - (kernel[i] - 1 - tap[i]) * a.dilation[i];
  }
  Tensor y = pad(x, before, after);
  for (int i = 0; i < size.rank(); ++i) y = slice(y, i + 2, 0, (size[i] - 1) * a.stride[i] + 1, a.stride[i]);
  return y;
}

/// As a product of the weights and what all taps read.
Tensor convolved(const Tensor& x, const Tensor& w, const Shape& size, const ConvolutionAttrs& a) {
  Shape kernel;
  for (int i = 2; i < w.rank(); ++i) kernel.push_back(w.shape()[i]);
  Tensors taps;
  for_each_index(kernel, [&](const Shape& tap) { taps.push_back(read_by_tap(x, tap, kernel, a, size)); });
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
  for_each_index(a.kernel, [&](const Shape& tap) { taps.push_back(read_by_tap(x, tap, a.kernel, windows, a.size)); });
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

/// Where the k-th tap of every place reads, i64 [to], and its weights in f64: numbers, or computed from the extents
/// where those may stay open.
struct Taps {
  Tensor at, weight;
};

Taps known_taps(const ResampleAttrs& a, int k) {
  std::vector<std::int64_t> at;
  std::vector<double> weights;
  for (std::int64_t i = 0; i < a.to; ++i) {
    const ferrite::detail::ResampleTaps t = ferrite::detail::resample_taps(a, i);
    at.push_back(t.at[k]);
    weights.push_back(t.weight[k]);
  }
  return {Tensor::from(at, {a.to}), Tensor::from(weights, {a.to})};
}

Tensor number(std::int64_t n) { return full({}, n, Dtype::i64); }

/// Places between elements: the one in front, i64 [to], and how far behind it, f64.
struct Between {
  Tensor low, rest;
};

/// Of two whole extents it is a quotient of whole numbers: exact, whatever a compiler does with sums and products.
Between places_between(const ResampleAttrs& a) {
  const Tensor i = arange(a.to);
  if (a.scale > 0 && !a.align_corners) {
    const Tensor at = (cast(i, Dtype::f64) + 0.5) * (1 / a.scale) - 0.5, low = floor(at);
    return {cast(low, Dtype::i64), at - low};
  }
  const Tensor above = a.align_corners ? i * number(a.from - 1) : (i * 2 + 1) * number(a.from) - number(a.to);
  const Tensor below = a.align_corners ? maximum(number(a.to - 1), 1) : number(2 * a.to);
  const Tensor low = floor_divide(above, below);
  return {low, cast(above - low * below, Dtype::f64) / cast(below, Dtype::f64)};
}

/// The rule of ferrite::detail::resample_taps in operations; its constants follow from the extents.
std::vector<Taps> computed_taps(const ResampleAttrs& a, int count) {
  const auto within = [last = number(a.from - 1)](const Tensor& at) { return minimum(maximum(at, 0), last); };
  if (count == 1) {  // PyTorch computes nearest places in f32
    const Tensor place = cast(arange(a.to), Dtype::f32), from = cast(number(a.from), Dtype::f32);
    const Tensor apart = a.scale > 0 ? full({}, 1 / a.scale, Dtype::f32) : from / cast(number(a.to), Dtype::f32);
    const Tensor at = (a.mode == 1 ? place + 0.5 : place) * apart;
    return {{within(cast(floor(at), Dtype::i64)), ones({a.to}, Dtype::f64)}};
  }
  const auto [low, t] = places_between(a);
  if (count == 2) {  // in front of the first element there is nothing between
    const Tensor inside = where(low < 0, 0.0, t);
    const Tensor first = within(low);
    return {{first, 1.0 - inside}, {within(first + 1), inside}};
  }
  constexpr double kA = -0.75;  // Keys
  const auto near = [](const Tensor& x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1.0; };
  const auto far = [](const Tensor& x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {{within(low - 1), far(t + 1.0)},
          {within(low), near(t)},
          {within(low + 1), near(1.0 - t)},
          {within(low + 2), far(2.0 - t)}};
}

/// Every tap of all places at once, times its weights.
Tensor resampled(const Tensor& x, const ResampleAttrs& a) {
  const int count = ferrite::detail::resample_taps(a, 0).count;
  std::vector<Taps> taps;
  if (KeepExtentsOpen::active())
    taps = computed_taps(a, count);
  else
    for (int k = 0; k < count; ++k) taps.push_back(known_taps(a, k));
  Shape along = Shape::filled(x.rank(), 1);
  along[a.axis] = a.to;
  Tensor y;
  for (const Taps& t : taps) {
    const Tensor part = index_select(x, a.axis, t.at) * reshape(cast(t.weight, x.dtype()), along);
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
