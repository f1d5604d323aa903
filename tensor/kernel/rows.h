#pragma once
/// Kernels of composites along rows, each in passes over a row that stays in the cache. Their bits are those of the
/// composites' parts: the same functions of whole packets, the same order of sums.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Consecutive rows of n elements.
struct DenseRows {
  std::int64_t count, n;
};

/// Rows of scores, `step` elements apart, with room for whole lines: row r sees its first `first` + r elements, at most
/// n.
struct ScoreRows {
  std::int64_t count, n, step, first;
};

/// Kernels of composites along rows for f32 and f64; n is not 0.
template <class T>
struct RowKernels {
  void (*softmax)(const T* x, T* y, const DenseRows& rows);
  /// Computes the softmax of the elements that each row sees, in place, and writes 0 to the rest of its n elements.
  void (*weights)(T* scores, const ScoreRows& rows);
  /// Hides scores by writing -infinity: `hide` where `seen` is 0, `add_mask` where the added mask is -infinity. Returns
  /// whether any score is left.
  bool (*hide)(T* scores, const std::uint8_t* seen, std::int64_t n);
  bool (*add_mask)(T* scores, const T* mask, std::int64_t n);
  void (*log_softmax)(const T* x, T* y, const DenseRows& rows);
  /// Computes logsumexp, one result for each row.
  void (*logsumexp)(const T* x, T* y, const DenseRows& rows);
  void (*layer_norm)(const T* x, T* y, T epsilon, const DenseRows& rows);
  /// Compute the cotangent of x from the cotangent g of y = softmax(x), y = log_softmax(x) and layer_norm(x).
  void (*softmax_grad)(const T* g, const T* y, T* to, const DenseRows& rows);
  void (*log_softmax_grad)(const T* g, const T* y, T* to, const DenseRows& rows);
  void (*layer_norm_grad)(const T* g, const T* x, T* to, T epsilon, const DenseRows& rows);
  /// Computes the sum of the squared distances from the mean, divided by `divisor`: one result for each row.
  void (*var)(const T* x, T* y, T divisor, const DenseRows& rows);
  /// Compute the sum of squares, of |x|^3, of absolute values, and the largest absolute value of each row.
  void (*squares)(const T* x, T* y, const DenseRows& rows);
  void (*cubes)(const T* x, T* y, const DenseRows& rows);
  void (*sizes)(const T* x, T* y, const DenseRows& rows);
  void (*largest)(const T* x, T* y, const DenseRows& rows);
};
extern const FloatTablesInUse<RowKernels> rows_in_use;

}  // namespace ferrite::detail
