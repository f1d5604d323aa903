#pragma once
/// Kernels of sums, products, linear recurrences and extrema along an axis.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Lines of n elements, `count` of them. The elements of a line are `stride` apart; lines lie next to each other where
/// stride > 1 and are consecutive where it is 1. A reverse loop begins with the last element of each.
struct CumulativeLines {
  std::int64_t count, n, stride;
  bool reverse;
};

/// Kernels of running sums, products and recurrences for f32 and f64. Totals are f64, rounded once for each element
/// that is stored.
template <class T>
struct CumulativeKernels {
  /// Computes y[k] = x[0] + ... + x[k]. Lines of stride 1 are summed in blocks of 8, within each by doubling (x[k] +
  /// x[k-1], then pairs, then fours), and then with the total of the blocks before; other lines element by element.
  void (*sum)(const T* x, T* y, const CumulativeLines& lines);
  /// Computes y[k] = x[0] ... x[k], factor by factor.
  void (*product)(const T* x, T* y, const CumulativeLines& lines);
  /// Computes y[0] = b[0], y[k] = a[k] y[k - 1] + b[k].
  void (*recurrence)(const T* a, const T* b, T* y, const CumulativeLines& lines);
};

/// Computes y[k] = the best of x[0] ... x[k], and its position index[k]: of equal ones, and of NaNs, the last. A NaN is
/// better than all numbers.
template <class T>
using RunningExtremum = void (*)(const T* x, T* y, std::int64_t* index, const CumulativeLines& lines);
struct RunningExtrema {
  RunningExtremum<float> f32;
  RunningExtremum<double> f64;
  RunningExtremum<std::int32_t> i32;
  RunningExtremum<std::int64_t> i64;

  template <class T>
  RunningExtremum<T> of() const {
    if constexpr (std::is_same_v<T, float>) return f32;
    if constexpr (std::is_same_v<T, double>) return f64;
    if constexpr (std::is_same_v<T, std::int32_t>) return i32;
    if constexpr (std::is_same_v<T, std::int64_t>) return i64;
  }
};

struct ExtremaKernels {
  RunningExtrema largest, smallest;
};

extern const FloatTablesInUse<CumulativeKernels> cumulative_in_use;
extern const TableInUse<ExtremaKernels> extrema_in_use;

}  // namespace ferrite::detail
