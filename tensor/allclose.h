#pragma once
/// Tests whether tensors are equal up to rounding.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Tolerances of `allclose`.
struct CloseOptions {
  double relative = 1e-5;  ///< factor of |b|
  double absolute = 1e-8;  ///< difference that is allowed in any case
  bool equal_nan = false;  ///< whether NaN is close to NaN
};

/// Returns whether |a - b| <= absolute + relative |b| for all elements, computed in double. An infinity is close only
/// to the same infinity. The shapes broadcast. Semantics of torch.allclose, for any dtypes. Throws ShapeError for
/// shapes that do not broadcast, ValueError for tolerances that are negative or not finite, and TraceError while a
/// function is being traced, since it reads values.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});

}  // namespace ferrite
