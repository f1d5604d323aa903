#pragma once
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Whether nobody but this handle holds the tensor and its whole buffer.
bool owned_alone(const Tensor& t);

/// total + d, as the operation `add`. Where nobody is recording and nobody else holds `total`, its own buffer takes
/// the sum; the bits are the same.
void accumulate(Tensor& total, const Tensor& d);

}  // namespace ferrite::detail
