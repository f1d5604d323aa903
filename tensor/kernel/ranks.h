#pragma once
/// Kernels that sort short rows: by a network of comparisons where keys have 32 bits, by counting how many elements
/// come before each where they have 64.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Most elements of a row that is sorted by counting.
inline constexpr std::int64_t kShortRow = 64;

/// Computes ranks[i], the number of the n elements, at most kShortRow, that come before x[i]: smaller ones (larger ones
/// with `descending`), and of equal ones those before it. A NaN is larger than all numbers; 0 and -0 are equal.
template <class T>
using RankRow = void (*)(const T* x, std::int64_t n, bool descending, std::int32_t* ranks);

/// Most elements of a row that is sorted by a network, and the number of rows that one call takes.
inline constexpr std::int64_t kNetworkRow = 256;
inline constexpr std::int64_t kNetworkRows = 8;

/// Computes places[r * kNetworkRow + j], the position in rows[r] of the element that comes j-th, j < k, in the order of
/// RankRow, for `count` rows, at most kNetworkRows, of n elements, at most kNetworkRow.
template <class T>
using SortRows = void (*)(const T* const* rows, std::int64_t count, std::int64_t n, bool descending, std::int64_t k,
                          std::uint8_t* places);

struct RankKernels {
  SortRows<float> f32;
  RankRow<double> f64;
  SortRows<std::int32_t> i32;
  RankRow<std::int64_t> i64;
};

extern const TableInUse<RankKernels> ranks_in_use;

/// Returns an integer in whose order elements are sorted.
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
