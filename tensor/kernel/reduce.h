#pragma once
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

enum class Reduction : std::uint8_t { sum, prod, max, min };

/// Reduces x over `axes` (sorted) into the contiguous `out`, whose dtype is x's, or i64 for sums of i32 and bool.
/// The order is that of docs/numerics.md, rule 3: 16 lanes (f64: 8) inside blocks of 1024 elements taken in
/// row-major order of the reduced axes, lanes halved pairwise, blocks ascending; whatever the strides.
void reduce(Reduction kind, const Tensor& x, const Shape& axes, Tensor& out);

/// The same for contiguous rows of floats; null for other dtypes.
RowReduction row_reduction(Reduction kind, Dtype dtype);

/// Rows of a block of which each joins the lane of its number, and these lanes.
struct DealtRows {
  const void* rows;  ///< dense
  std::int64_t count;
  std::int64_t width;
  std::int64_t first;  ///< number of the first in its block
  std::byte* lanes;
  std::int64_t lane_bytes;  ///< from lane to lane
};
/// For kernels that reduce what they compute: n floats are joined into as many others, rows are dealt out, and an
/// identity fills n.
struct JoinRuns {
  void (*join)(void* to, const void* x, std::int64_t n);
  void (*deal)(const DealtRows& rows);
  void (*clear)(void* to, std::int64_t n);
  std::int64_t lanes;  ///< that a block is dealt out to
};
/// For f32 or f64.
JoinRuns join_runs(Reduction kind, Dtype dtype);
inline constexpr std::int64_t kReductionBlock = 1024;

}  // namespace ferrite::detail
