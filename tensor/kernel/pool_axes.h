#pragma once
/// The windows of pooling, from its constants.
#include "ferrite/tensor/kernel/pooling.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

/// Returns the windows on planes of these extents.
PoolAxes axes_of_pool(const Shape& space, const PoolAttrs& attrs);
/// Returns the extents of the spatial axes.
Shape space_of(const Shape& shape);

}  // namespace ferrite::detail
