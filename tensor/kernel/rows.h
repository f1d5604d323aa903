#pragma once
/// Kernels of composites along rows, each in passes over a row that stays in the cache. Their bits are those of the
/// composites' parts: the same functions of whole packets, the same order of sums.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Rows of n elements, one after the other.
struct DenseRows {
  std::int64_t count, n;
};

/// Rows of scores, `step` elements apart, with room for whole lines: row r sees its first `first` + r elements, at most
/// n.
struct ScoreRows {
  std::int64_t count, n, step, first;
};

/// For f32 and f64; n is not 0.
template <class T>
struct RowKernels {
  void (*softmax)(const T* x, T* y, const DenseRows& rows);
  /// The softmax of what each row sees, in place, and 0 in the rest of its n elements.
  void (*weights)(T* scores, const ScoreRows& rows);
  /// Hides scores, as -infinity: where `seen` is 0, and where what is added is -infinity. Whether any is left.
  bool (*hide)(T* scores, const std::uint8_t* seen, std::int64_t n);
  bool (*add_mask)(T* scores, const T* mask, std::int64_t n);
  void (*log_softmax)(const T* x, T* y, const DenseRows& rows);
  /// One result for each row.
  void (*logsumexp)(const T* x, T* y, const DenseRows& rows);
  void (*layer_norm)(const T* x, T* y, T epsilon, const DenseRows& rows);
  /// What a cotangent g becomes behind y = softmax(x), y = log_softmax(x), layer_norm(x).
  void (*softmax_grad)(const T* g, const T* y, T* to, const DenseRows& rows);
  void (*log_softmax_grad)(const T* g, const T* y, T* to, const DenseRows& rows);
  void (*layer_norm_grad)(const T* g, const T* x, T* to, T epsilon, const DenseRows& rows);
  /// The sum of the squares of the distances from the mean, divided by `divisor`: one result for each row.
  void (*var)(const T* x, T* y, T divisor, const DenseRows& rows);
  /// The sums of squares, of |x|^3, of absolute values, and the largest absolute value.
  void (*squares)(const T* x, T* y, const DenseRows& rows);
  void (*cubes)(const T* x, T* y, const DenseRows& rows);
  void (*sizes)(const T* x, T* y, const DenseRows& rows);
  void (*largest)(const T* x, T* y, const DenseRows& rows);
};
extern const FloatTablesInUse<RowKernels> rows_in_use;

}  // namespace ferrite::detail
