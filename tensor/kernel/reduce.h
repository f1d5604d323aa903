#pragma once
/// Reductions of tensors, and kernels for other operations that reduce what they compute.
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// Reduces x over `axes` (sorted) into the contiguous `out`, whose dtype is x's, or i64 for sums of i32 and bool.
/// The order is that of docs/numerics.md, rule 3: 16 lanes (f64: 8) inside blocks of 1024 elements taken in
/// row-major order of the reduced axes, lanes halved pairwise, blocks ascending; whatever the strides.
void reduce(const Reduction& kind, const Tensor& x, const Shape& axes, Tensor& out);

/// Returns the reduction of contiguous rows of floats, in the same order as `reduce`; null for other dtypes.
RowReduction row_reduction(const Reduction& kind, Dtype dtype);

/// Returns the functions that join runs in a reduction, for f32 or f64.
JoinRuns join_runs(const Reduction& kind, Dtype dtype);

}  // namespace ferrite::detail
