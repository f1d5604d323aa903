#pragma once
/// Kernels of sums, products and linear recurrences along an axis.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Lines of n elements that lie `stride` apart, beside each other where stride > 1 and one after the other where it
/// is 1: `count` of them. A reverse loop begins with the last element of each.
struct CumulativeLines {
  std::int64_t count, n, stride;
  bool reverse;
};

/// For f32 and f64. Totals are f64, rounded once for each element that is stored.
template <class T>
struct CumulativeKernelsOf {
  /// y[k] = x[0] + ... + x[k]. Lines of stride 1 are summed in blocks of 8, in each by doubling (x[k] + x[k-1], then
  /// pairs, then fours) and then with the total of the blocks before it; other lines one element after the other.
  void (*sum)(const T* x, T* y, const CumulativeLines& lines);
  /// y[k] = x[0] ... x[k], one factor after the other.
  void (*product)(const T* x, T* y, const CumulativeLines& lines);
  /// y[0] = b[0], y[k] = a[k] y[k - 1] + b[k].
  void (*recurrence)(const T* a, const T* b, T* y, const CumulativeLines& lines);
};

struct CumulativeKernels {
  CumulativeKernelsOf<float> f32;
  CumulativeKernelsOf<double> f64;

  template <class T>
  const CumulativeKernelsOf<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return f32;
    } else {
      return f64;
    }
  }
};

extern const TableInUse<CumulativeKernels> cumulative_in_use;

}  // namespace ferrite::detail
