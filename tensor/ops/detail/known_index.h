#pragma once
/// Gathers and scatters by an index that has been read before, as gradients have it: they refuse nothing.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Zeros of x's type with the source's elements added at an index along an axis.
Tensor scatter_known(const Spec& x, int axis, const Tensor& index, const Tensor& source);
/// out[i][j] = x[index[i][j]][j] for axis 0, and so on.
Tensor gather_known(const Tensor& x, int axis, const Tensor& index);

}  // namespace ferrite::detail
