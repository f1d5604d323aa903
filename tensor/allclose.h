#pragma once
/// Whether tensors are equal but for rounding.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

struct CloseOptions {
  double relative = 1e-5;  ///< of the second one's values
  double absolute = 1e-8;
  bool equal_nan = false;  ///< NaN is close to NaN
};

/// Whether |a - b| <= absolute + relative |b| for all elements, in double; infinities are close to themselves alone.
/// The shapes broadcast. Semantics of torch.allclose, for any dtypes. Throws ShapeError for shapes that do not
/// broadcast, ValueError for tolerances that are negative or not finite, and TraceError while a function is traced: it
/// reads values.
bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options = {});

}  // namespace ferrite
