#pragma once
/// Padding of rows whose lengths have been checked.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// `without_padding` (tensor/ops.h) of lengths i64 [B] that are known to lie in 0..T: others give numbers without a
/// meaning. Undefined lengths give x itself.
Tensor padding_replaced(const Tensor& x, const Tensor& lengths, bool batch_first = false);

}  // namespace ferrite::detail
