/// Pooling axis by axis, as slices that are joined element by element; the adjoints are gradients.
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::PlaneAttrs;
using ferrite::detail::PoolAttrs;

/// The windows of the i-th axis of space, joined to one element each.
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

/// The elements of an axis of n that the k-th window holds; a shorter one has its first element again at the end.
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

/// The places in a plane of what each window holds, row by row: [windows, elements].
Tensor places_held(const Shape& plane, const PoolAttrs& a) {
  std::vector<std::vector<std::int64_t>> places{{0}};  // by window
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

/// Elements of a plane, in a batch without rows, too.
std::int64_t plane_of(const Shape& s) {
  std::int64_t n = 1;
  for (int i = 2; i < s.rank(); ++i) n *= s[i];
  return n;
}
Tensor as_rows(const Tensor& x) { return reshape(x, {x.shape()[0] * x.shape()[1], plane_of(x.shape())}); }

/// The place of the first largest element in each window, or of its last NaN.
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

/// What is put at one place is the same, where pooling gave the places: the mean of it.
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
