#pragma once
/// Kernels that sort short rows by counting how many elements come before each.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Most elements of a row that is sorted by counting.
inline constexpr std::int64_t kShortRow = 64;

/// ranks[i] = how many of the n elements, at most kShortRow, come before x[i]: smaller ones (larger ones with
/// `descending`), and of equal ones those before it. A NaN is larger than all numbers; 0 and -0 are equal.
template <class T>
using RankRow = void (*)(const T* x, std::int64_t n, bool descending, std::int32_t* ranks);

struct RankKernels {
  RankRow<float> f32;
  RankRow<double> f64;
  RankRow<std::int32_t> i32;
  RankRow<std::int64_t> i64;
};

extern const TableInUse<RankKernels> ranks_in_use;

/// An integer in whose order elements are sorted.
[[gnu::always_inline]] inline std::int32_t order_key(std::int32_t x) { return x; }
[[gnu::always_inline]] inline std::int64_t order_key(std::int64_t x) { return x; }
[[gnu::always_inline]] inline std::int32_t order_key(bool x) { return x ? 1 : 0; }
[[gnu::always_inline]] inline std::int32_t order_key(float x) {
  if (x != x) return INT32_MAX;
  const auto bits = __builtin_bit_cast(std::int32_t, x + 0.0F);  // -0 becomes 0
  return bits ^ ((bits >> 31) & INT32_MAX);
}
[[gnu::always_inline]] inline std::int64_t order_key(double x) {
  if (x != x) return INT64_MAX;
  const auto bits = __builtin_bit_cast(std::int64_t, x + 0.0);
  return bits ^ ((bits >> 63) & INT64_MAX);
}

}  // namespace ferrite::detail
