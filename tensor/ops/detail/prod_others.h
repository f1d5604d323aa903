#pragma once
/// What the gradient of `prod` is made of.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// For each element the product of the others along axes, of x's shape.
Tensor prod_others(const Tensor& x, const Shape& axes);

}  // namespace ferrite::detail
