#pragma once
/// What products of quantised integers share.
#include "ferrite/exchange/onnx/call.h"

namespace ferrite::onnx::detail {

/// Input i less its zero point, as f64: sums of products of integers of 8 bits are exact there. A zero point for each
/// element of an axis stands for rows where `rows` says so, else for columns.
Tensor centred(const Call& call, std::size_t i, std::size_t zero, bool rows);

/// Rounded to nearest even and clamped to the type of a quantised result.
Value saturated(const Call& call, const Tensor& y, ElementType to);

/// Numbers as bytes by their own range, which contains 0.
struct DynamicBytes {
  Tensor bytes;  ///< f32, whole numbers from 0 to 255
  Tensor scale;  ///< f32 []
  Tensor zero;   ///< f32 [], a whole number
};
DynamicBytes bytes_of(const Tensor& x);

}  // namespace ferrite::onnx::detail
