#pragma once
/// The operations of pooling, by their constants.
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

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
