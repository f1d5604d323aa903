#pragma once
/// What a level (tensor/kernel/level.h) has for recurrences.
#include "ferrite/nn/recurrent/detail/recurrence.h"

namespace ferrite::nn::detail {

/// One row of one step on the way back. dh and dc come in whole and leave as what passes by the product.
template <class T>
struct RowBack {
  const T* saved;
  const T* y;         ///< of this step
  const T* before;    ///< h before this step
  const T* c_before;  ///< c before this step
  const T* dwhole;    ///< cotangent of o tanh(c): dh, or what comes through a projection
  T* dh;
  T* dc;
  T* d;      ///< the places of this row
  T* whole;  ///< o tanh(c) goes here, for the gradient of a projection; or null
  std::int64_t H;
};

/// One row with the reset before the product: from the cotangent of n's sum through W_hn to r and h.
template <class T>
struct ResetBack {
  const T* product;  ///< the cotangent of r h
  const T* r;
  const T* h;  ///< before this step
  T* dr;       ///< the place of r's sum
  T* rh;       ///< r h goes here, for the gradient of W_hn
  T* dh;
  std::int64_t H;
};

template <class T>
struct RecurrenceKernels {
  /// Elements of memory that `rows` needs for so many rows.
  std::int64_t (*memory)(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t rows);
  /// The rows [begin, end) of a batch through all steps.
  void (*rows)(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin, std::int64_t end, T* memory);
  void (*input_product)(CellType cell, const RecurrenceWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row,
                        T* i, std::int64_t i_gate, std::int64_t i_row);
  void (*step)(CellType cell, const RecurrenceWeights<T>& w, const RecurrenceStep<T>& s);
  void (*row_back)(CellType cell, const RowBack<T>& s);
  /// to [rows, to_row] = a . w, or += with `add`; whole packets of `to` are written.
  void (*product_back)(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to,
                       std::int64_t to_row, bool add);
  void (*reset_back)(const ResetBack<T>& s);
};
struct RecurrenceTable {
  RecurrenceKernels<float> f32;
  RecurrenceKernels<double> f64;
};

/// The table of the level in use.
extern const RecurrenceTable* const recurrence_in_use;
template <class T>
const RecurrenceKernels<T>& recurrence_kernels() {
  if constexpr (sizeof(T) == 4) {
    return recurrence_in_use->f32;
  } else {
    return recurrence_in_use->f64;
  }
}

}  // namespace ferrite::nn::detail
