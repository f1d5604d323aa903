#pragma once
#include <string_view>

#include "ferrite/tensor/tensor.h"

namespace ferrite::nn::detail {

/// Throws ShapeError, beginning with `where`, unless lengths are i64 [B], each in 1..T. Values are not looked at while
/// they are being traced.
void check_lengths(std::string_view where, const Tensor& lengths, std::int64_t B, std::int64_t T);

}  // namespace ferrite::nn::detail
