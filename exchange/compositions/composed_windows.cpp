/// Compositions of operations on windows as slices, products and sums, and of pooling axis by axis; their adjoints are
/// the gradients.
#include <cmath>
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/emit/keep_extents_open.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/oracle.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::for_each_index;

/// Returns the elements of x that one tap of the windows reads: x padded with zeros, sliced by the strides.
Tensor read_by_tap(const Tensor& x, const Shape& tap, const Shape& kernel, const ConvolutionAttrs& a,
                   const Shape& size) {
  Shape before = Shape::filled(x.rank(), 0), after = before;
  for (int i = 0; i < size.rank(); ++i) {
    const std::int64_t behind =
        space_behind(x.shape()[i + 2], kernel[i], a.stride[i], a.dilation[i], a.before[i], size[i]);
    before[i + 2] = a.before[i] - tap[i] * a.dilation[i];  // negative where the tap begins later: crops
    after[i + 2] = behind - (kernel[i] - 1 - tap[i]) * a.dilation[i];
  }
  Tensor y = pad(x, before, after);
  for (int i = 0; i < size.rank(); ++i) y = slice(y, i + 2, 0, (size[i] - 1) * a.stride[i] + 1, a.stride[i]);
  return y;
}

/// Returns the convolution as a product of the weights and the elements that all taps read.
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

/// Returns the extents of the spatial axes.
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

/// The elements that the k-th tap of every place reads, i64 [to], and its weights in f64: constants, or values computed
/// from the extents where those may stay open.
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

/// Places between elements: the element before each, i64 [to], and the distance from it, f64.
struct Between {
  Tensor low, rest;
};

/// Returns the places between elements. Without a factor they are quotients of integers, which are exact, whatever a
/// compiler does with sums and products.
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

/// Returns whether the number of places for a factor is a rounded quotient by at most 8; others cannot stay open.
bool is_quotient(double factor) {
  for (const double d : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0})
    if (factor * d == std::round(factor * d)) return true;
  return false;
}

/// Computes the taps of ferrite::detail::resample_taps by operations whose constants follow from the extents.
std::vector<Taps> computed_taps(const ResampleAttrs& a, int count) {
  const auto within = [last = number(a.from - 1)](const Tensor& at) { return minimum(maximum(at, 0), last); };
  if (count == 1) {  // PyTorch computes nearest places in f32
    const Tensor place = cast(arange(a.to), Dtype::f32), from = cast(number(a.from), Dtype::f32);
    const Tensor apart = a.scale > 0 ? full({}, 1 / a.scale, Dtype::f32) : from / cast(number(a.to), Dtype::f32);
    const Tensor at = (a.mode == 1 ? place + 0.5 : place) * apart;
    return {{within(cast(floor(at), Dtype::i64)), ones({a.to}, Dtype::f64)}};
  }
  const auto [low, t] = places_between(a);
  if (count == 2) {  // places before the first element are not between two
    const Tensor inside = where(low < 0, 0.0, t);
    const Tensor first = within(low);
    return {{first, 1.0 - inside}, {within(first + 1), inside}};
  }
  constexpr double kA = -0.75;  // from Keys' cubic convolution
  const auto near = [](const Tensor& x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1.0; };
  const auto far = [](const Tensor& x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {{within(low - 1), far(t + 1.0)},
          {within(low), near(t)},
          {within(low + 1), near(1.0 - t)},
          {within(low + 2), far(2.0 - t)}};
}

/// Returns the sum over taps of the elements that each reads at all places, times its weights.
Tensor resampled(const Tensor& x, const ResampleAttrs& a) {
  const int count = ferrite::detail::resample_taps(a, 0).count;
  std::vector<Taps> taps;
  if (KeepExtentsOpen::active() && (a.scale <= 0 || is_quotient(a.scale)))
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

// ---- pooling -------------------------------------------------------------------------------------------------------

namespace {

using ferrite::detail::PlaneAttrs;
using ferrite::detail::PoolAttrs;

/// Reduces the windows of the i-th spatial axis to one element each.
Tensor pooled_axis(const Tensor& x, int i, const PoolAttrs& a, bool largest) {
  const int axis = i + 2;
  const std::int64_t n = x.shape()[axis], size = a.size[i];
  Tensors parts;
  if (a.adaptive) {
    for (std::int64_t k = 0; k < size; ++k) {
      const Tensor held = slice(x, axis, k * n / size, ((k + 1) * n + size - 1) / size);
      parts.push_back(largest ? amax(held, {axis}, true) : sum(held, {axis}, true));
    }
    return concat(std::span<const Tensor>(parts.data(), parts.size()), axis);
  }
  Shape before = Shape::filled(x.rank(), 0), after = before;
  before[axis] = a.before[i];
  after[axis] = space_behind(n, a.kernel[i], a.stride[i], a.dilation[i], a.before[i], size);
  const Tensor padded = pad(x, before, after, largest ? Scalar(-std::numeric_limits<double>::infinity()) : Scalar(0));
  Tensor y;
  for (std::int64_t t = 0; t < a.kernel[i]; ++t) {
    const std::int64_t at = t * a.dilation[i];
    const Tensor tap = slice(padded, axis, at, at + (size - 1) * a.stride[i] + 1, a.stride[i]);
    y = !y.defined() ? tap : largest ? maximum(y, tap) : y + tap;
  }
  return y;
}

Tensor pooled(Tensor x, const PoolAttrs& a, bool largest) {
  for (int i = a.size.rank() - 1; i >= 0; --i) x = pooled_axis(x, i, a, largest);
  return x;
}

Tensors max_pool(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<PoolAttrs>();
  return {pooled(in[0], a, true)};
}

/// Returns the elements of an axis of n that the k-th window holds; a shorter window repeats its first element.
std::vector<std::int64_t> held_by(const PoolAttrs& a, int i, std::int64_t n, std::int64_t k) {
  const std::int64_t size = a.size[i];
  std::vector<std::int64_t> all;
  if (a.adaptive) {
    for (std::int64_t at = k * n / size; at < ((k + 1) * n + size - 1) / size; ++at) all.push_back(at);
    all.resize(static_cast<std::size_t>((n + size - 1) / size + 1), all[0]);
    return all;
  }
  for (std::int64_t t = 0; t < a.kernel[i]; ++t) {
    const std::int64_t at = k * a.stride[i] + t * a.dilation[i] - a.before[i];
    if (at >= 0 && at < n) all.push_back(at);
  }
  if (all.empty()) throw ExportError("max_pool_indices: a window holds nothing but padding: " + a.before.str());
  all.resize(static_cast<std::size_t>(a.kernel[i]), all[0]);
  return all;
}

/// Returns the places in a plane of the elements that each window holds, row by row: [windows, elements].
Tensor places_held(const Shape& plane, const PoolAttrs& a) {
  std::vector<std::vector<std::int64_t>> places{{0}};  // places that each window holds
  for (int i = 0; i < plane.rank(); ++i) {
    std::vector<std::vector<std::int64_t>> finer;
    for (const std::vector<std::int64_t>& outer : places)
      for (std::int64_t k = 0; k < a.size[i]; ++k) {
        finer.emplace_back();
        for (const std::int64_t row : outer)
          for (const std::int64_t at : held_by(a, i, plane[i], k)) finer.back().push_back(row * plane[i] + at);
      }
    places = std::move(finer);
  }
  std::vector<std::int64_t> all;
  for (const std::vector<std::int64_t>& window : places) all.insert(all.end(), window.begin(), window.end());
  const auto windows = static_cast<std::int64_t>(places.size());
  return Tensor::from<std::int64_t>(all, {windows, static_cast<std::int64_t>(all.size()) / windows});
}

Tensors pool_sum(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<PoolAttrs>();
  return {pooled(in[0], a, false)};
}
Tensors pool_spread(const Composed& c, const Tensors& in) {
  const auto a = c.attrs.as<PoolAttrs>();
  Tape tape;
  const Tensor x = tape.watch(zeros(c.out[0].shape, c.out[0].dtype));
  return {tape.grad(pooled(x, a, false), {x}, {}, in[0])[0]};
}

/// Returns the number of elements of a plane, also for a batch without rows.
std::int64_t plane_of(const Shape& s) {
  std::int64_t n = 1;
  for (int i = 2; i < s.rank(); ++i) n *= s[i];
  return n;
}
Tensor as_rows(const Tensor& x) { return reshape(x, {x.shape()[0] * x.shape()[1], plane_of(x.shape())}); }

/// Returns the place of the first largest element in each window, or of its last NaN.
Tensors max_pool_indices(const Composed& c, const Tensors& in) {
  Shape plane;
  for (int i = 2; i < in[0].rank(); ++i) plane.push_back(in[0].shape()[i]);
  const Tensor places = places_held(plane, c.attrs.as<PoolAttrs>()), rows = as_rows(in[0]);
  const Shape windows{rows.shape()[0], places.shape()[0], places.shape()[1]};
  const Tensor held = reshape(index_select(rows, 1, reshape(places, {-1})), windows);
  const Tensor largest = gather(expand(places, windows), 2, argmax(held, 2, true));
  const Tensor nan = amax(where(eq(held, held), -1, places), {2}, true);
  return {reshape(where(nan >= 0, nan, largest), c.out[0].shape)};
}

Tensors plane_gather(const Composed& c, const Tensors& in) {
  return {reshape(gather(as_rows(in[0]), 1, as_rows(in[1])), c.out[0].shape)};
}

/// Composes plane_scatter, which adds the elements for each place or takes their mean: where pooling gave the places,
/// these elements are equal.
Tensors plane_scatter(const Composed& c, const Tensors& in) {
  const bool adds = c.attrs.as<PlaneAttrs>().add;
  const Shape& s = c.out[0].shape;
  const Tensor none = zeros({s[0] * s[1], plane_of(s)}, c.out[0].dtype);
  const Tensor indices = as_rows(in[1]), y = as_rows(in[0]);
  const Tensor sums = scatter_add(none, 1, indices, y);
  if (adds) return {reshape(sums, s)};
  return {reshape(sums / maximum(scatter_add(none, 1, indices, ones_like(y)), 1), s)};
}

}  // namespace

Compositions pooling_compositions() {
  static constexpr NamedComposition list[] = {{"max_pool", max_pool},         {"max_pool_indices", max_pool_indices},
                                              {"pool_sum", pool_sum},         {"pool_spread", pool_spread},
                                              {"plane_gather", plane_gather}, {"plane_scatter", plane_scatter}};
  return list;
}

}  // namespace ferrite::exchange::detail
