#pragma once
/// What the steps and the chunks of an mLSTM's memory share.
#include "ferrite/tensor/ops.h"

namespace ferrite::nn::detail {

/// The exponent of a memory that holds nothing, and of a step that is hidden: minus infinity in effect, but finite, so
/// that differences are no NaN.
constexpr double kNewMemory = -1e30;

/// v [..., d] -> [..., d + 1] with 1 as the last column, which adds up to n.
inline Tensor with_one(const Tensor& v) {
  Shape shape = v.shape();
  shape[-1] = 1;
  return concat({v, ones(shape, v.dtype())}, -1);
}

/// What the values seen are divided by: max(|n|, exp(-m)) + 1e-6. exp(-m) stays finite.
inline Tensor normaliser(const Tensor& n, const Tensor& m) { return maximum(abs(n), exp(minimum(-m, 80))) + 1e-6; }

}  // namespace ferrite::nn::detail
