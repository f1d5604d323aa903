#pragma once
/// Checks of the lengths of a batch's sequences, as part of the program.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::nn::detail {

/// The lengths i64 [B], checked as part of the program to lie in 1..T each (tensor/ops.h: checked). Throws ShapeError
/// in the words of `who`, "gru: a length of".
Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T);

}  // namespace ferrite::nn::detail
