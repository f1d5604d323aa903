#pragma once
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// total + d, as the operation `add`. Where nobody is recording and nobody else holds `total`, its own buffer takes
/// the sum; the bits are the same.
void accumulate(Tensor& total, const Tensor& d);

}  // namespace ferrite::detail
