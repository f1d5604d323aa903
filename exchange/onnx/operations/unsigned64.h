#pragma once
/// Arithmetic of uint64, which is held in i64 by its bits: comparisons and quotients need care, sums and products do
/// not.
#include <limits>

#include "ferrite/exchange/onnx/value.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {

/// Maps the numbers of a type to numbers that i64 orders in the same way, and back: for uint64 it flips the highest
/// bit, by a sum that wraps around; other numbers stay.
inline Tensor ordered(const Tensor& x, ElementType type) {
  return type == ElementType::u64 ? x + std::numeric_limits<std::int64_t>::min() : x;
}

/// Returns a / b of uint64. Half of a, which has a sign to spare, gives all but the last bit.
inline Tensor unsigned_quotient(const Tensor& a, const Tensor& b) {
  const auto reaches = [](const Tensor& x, const Tensor& y) {
    return cast(ordered(x, ElementType::u64) >= ordered(y, ElementType::u64), Dtype::i64);
  };
  const Tensor signed_half = floor_divide(a, 2);
  const Tensor half = where(a < 0, ordered(signed_half, ElementType::u64), signed_half);
  const Tensor small = where(b < 0, ones_like(b), b);
  const Tensor twice = floor_divide(half, small) * 2;
  return where(b < 0, reaches(a, b), twice + reaches(a - twice * small, small));
}

}  // namespace ferrite::onnx::detail
