#pragma once
/// Sums added in place where nothing else can see the buffer, with the bits of `add`.
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

/// Whether nobody but this handle holds the tensor and its whole buffer.
bool owned_alone(const Tensor& t);

/// The value of a variable past the recorders: for those who write it in place, where it is known that nothing is being
/// recorded.
const Tensor& held_by(const Variable& variable);

/// total + d, as the operation `add`. Where nobody is recording and nobody else holds `total`, its own buffer takes
/// the sum; the bits are the same.
void accumulate(Tensor& total, const Tensor& d);

}  // namespace ferrite::detail
