#pragma once
/// Helpers that products of quantised integers share.
#include "ferrite/exchange/onnx/call.h"

namespace ferrite::onnx::detail {

/// Returns input i less its zero point, input `zero`, as f64: sums of products of integers of 8 bits are exact there.
/// Where there are several zero points, they belong to rows if `rows` says so, else to columns.
Tensor centred(const Call& call, std::size_t i, std::size_t zero, bool rows);

/// Returns y rounded to nearest even and clamped to the type of a quantised result.
Value saturated(const Call& call, const Tensor& y, ElementType to);

/// Numbers quantised to bytes by their range, extended to contain 0.
struct DynamicBytes {
  Tensor bytes;  ///< f32, whole numbers from 0 to 255
  Tensor scale;  ///< difference between adjacent bytes, f32 []
  Tensor zero;   ///< f32 [], a whole number
};
DynamicBytes bytes_of(const Tensor& x);

}  // namespace ferrite::onnx::detail
