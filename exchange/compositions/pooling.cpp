/// Pooling axis by axis, as slices that are joined element by element; the adjoints are gradients.
#include <limits>

#include "ferrite/autograd/tape.h"
#include "ferrite/exchange/compositions/compositions.h"
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
  after[axis] = (size - 1) * a.stride[i] + (a.kernel[i] - 1) * a.dilation[i] + 1 - a.before[i] - n;
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

Tensor as_rows(const Tensor& x) { return reshape(x, {x.shape()[0] * x.shape()[1], -1}); }

Tensors plane_gather(const Composed& c, const Tensors& in) {
  return {reshape(gather(as_rows(in[0]), 1, as_rows(in[1])), c.out[0].shape)};
}

/// What is put at one place is the same, where pooling gave the places: the mean of it.
Tensors plane_scatter(const Composed& c, const Tensors& in) {
  const bool adds = c.attrs.as<PlaneAttrs>().add;
  const Shape& s = c.out[0].shape;
  const Tensor none = zeros({s[0] * s[1], s.numel() / (s[0] * s[1])}, c.out[0].dtype);
  const Tensor indices = as_rows(in[1]), y = as_rows(in[0]);
  const Tensor sums = scatter_add(none, 1, indices, y);
  if (adds) return {reshape(sums, s)};
  return {reshape(sums / maximum(scatter_add(none, 1, indices, ones_like(y)), 1), s)};
}

}  // namespace

Compositions pooling_compositions() {
  static constexpr NamedComposition list[] = {{"max_pool", max_pool},
                                              {"pool_sum", pool_sum},
                                              {"pool_spread", pool_spread},
                                              {"plane_gather", plane_gather},
                                              {"plane_scatter", plane_scatter}};
  return list;
}

}  // namespace ferrite::exchange::detail
