#pragma once
/// Operations on windows over the spatial axes: their options, and pooling by constants.
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/kernel/pool_axes.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

/// Returns one number for each axis, given one for all, one for each, or none: then `usual`. Throws ShapeError for
/// another count, ValueError for numbers below `least`.
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

/// Returns the largest elements of windows; max_pool_indices, their positions in the plane (i64).
Tensor max_pool(const Tensor& x, const PoolAttrs& attrs);
Tensor max_pool_indices(const Tensor& x, const PoolAttrs& attrs);
/// Returns the elements of planes at indices; plane_scatter is the adjoint.
Tensor plane_gather(const Tensor& x, const Tensor& indices, bool known);
Tensor plane_scatter(const Tensor& y, const Tensor& indices, const PlaneAttrs& attrs);
/// Returns the sums of windows; pool_spread is the adjoint.
Tensor pool_sum(const Tensor& x, const PoolAttrs& attrs);
Tensor pool_spread(const Tensor& y, const PoolAttrs& attrs);
/// Returns the means of windows; norm_pool, their norms.
Tensor average_pool(const Tensor& x, const AveragePoolAttrs& attrs);
Tensor norm_pool(const Tensor& x, const AveragePoolAttrs& attrs);

void check_windows(std::string_view where, const PoolAttrs& a);
/// Checks that x is [N, C, ...] of floats with one, two or three spatial axes, and that the constants have one number
/// for each.
void check_pooled(std::string_view where, const Tensor& x, std::initializer_list<const Shape*> constants);
/// Returns the shape [N, C, size...].
Shape pooled_shape(const Shape& x, const Shape& size);

}  // namespace ferrite::detail
