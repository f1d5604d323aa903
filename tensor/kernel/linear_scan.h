#pragma once
/// Kernels of linear recurrences h[t] = a[t] h[t-1] + b[t] of rows of channels, and of their gradients.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::detail {

/// Some channels of one row: `steps` steps, `width` numbers apart. A complex channel is two numbers, its real and its
/// imaginary part. Pointers are to the row's first step and the first of the channels; a reverse loop begins with the
/// last step.
template <class T>
struct LinearScanRow {
  std::int64_t steps, width;
  std::int64_t channels;          ///< number of elements; even where complex
  bool reverse, complex, same_a;  ///< same_a: a is one step for all
  const std::uint8_t* resets;     ///< by step: whether h counts as 0 before it, in reverse after it; may be null
  const T *a, *h0;                ///< h0 [channels]: before the first step; null: zeros
};

/// Kernels of linear scans for f32 and f64. Every channel is a chain of one multiply-add a step (complex: a.re h +
/// (a.im i h + b), in two), so that values depend neither on what is computed together nor on where a sequence is cut.
template <class T>
struct LinearScanKernels {
  /// Computes h of all steps from b.
  void (*scan)(const LinearScanRow<T>& row, const T* b, T* h);
  /// Computes the gradients from those of h: of b, db[t] = dh[t] + conj(a[t+1]) db[t+1], and of a, da[t] = db[t]
  /// conj(h[t-1]), unless `da` is null. Where a is the same for all steps, da [channels] is their sum, last steps
  /// first, in blocks of 256. dh0 [channels], unless null: conj(a) db of the first step.
  void (*gradient)(const LinearScanRow<T>& row, const T* h, const T* dh, T* da, T* db, T* dh0);
};

extern const FloatTablesInUse<LinearScanKernels> linear_scan_in_use;

}  // namespace ferrite::detail
