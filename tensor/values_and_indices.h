#pragma once
/// What functions give that choose elements: these, and where they stand.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Chosen elements and their positions (i64, of the same shape) along the axis of the choice.
///
///     const auto [values, indices] = sort(x);
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;
};

}  // namespace ferrite
