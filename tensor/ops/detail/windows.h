#pragma once
/// Operations on windows over the axes of space: their options, and those of pooling by their constants.
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

/// One number for each axis, of one for all or one for each; none: the usual ones. Throws ShapeError for another count,
/// ValueError for numbers below `least`.
inline Shape space_numbers(std::string_view where, std::string_view what, const Shape& given, const Shape& usual,
                           std::int64_t least) {
  const int axes = usual.rank();
  if (given.rank() != 0 && given.rank() != 1 && given.rank() != axes)
    throw_shape(where, std::string(what) + " needs one number" + (axes > 1 ? " or " + std::to_string(axes) : "") +
                           ", got " + given.str());
  Shape all;
  for (int i = 0; i < axes; ++i) all.push_back(given.rank() == 0 ? usual[i] : given[given.rank() == 1 ? 0 : i]);
  for (const std::int64_t n : all)
    if (n < least)
      throw ValueError(std::string(where) + ": " + std::string(what) + " must be at least " + std::to_string(least) +
                       ", got " + given.str());
  return all;
}

/// The largest elements of windows, and their places in the plane (i64).
Tensor max_pool(const Tensor& x, const PoolAttrs& attrs);
Tensor max_pool_indices(const Tensor& x, const PoolAttrs& attrs);
/// Elements of planes at places in them, and the adjoint.
Tensor plane_gather(const Tensor& x, const Tensor& indices, bool known);
Tensor plane_scatter(const Tensor& y, const Tensor& indices, const PlaneAttrs& attrs);
/// Sums of windows, and the adjoint.
Tensor pool_sum(const Tensor& x, const PoolAttrs& attrs);
Tensor pool_spread(const Tensor& y, const PoolAttrs& attrs);
/// Means of windows, and their norms.
Tensor average_pool(const Tensor& x, const AveragePoolAttrs& attrs);
Tensor norm_pool(const Tensor& x, const AveragePoolAttrs& attrs);

/// The windows on planes of these extents.
PoolAxes axes_of_pool(const Shape& space, const PoolAttrs& attrs);
/// The extents of the axes of space.
Shape space_of(const Shape& shape);
void check_windows(std::string_view where, const PoolAttrs& a);
/// x [N, C, ...] of floats with one, two or three axes of space, for which the constants have one number each.
void check_pooled(std::string_view where, const Tensor& x, std::initializer_list<const Shape*> constants);
/// [N, C, size...].
Shape pooled_shape(const Shape& x, const Shape& size);

}  // namespace ferrite::detail
