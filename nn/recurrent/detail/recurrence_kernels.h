#pragma once
/// What a level (tensor/kernel/level.h) has for recurrences.
#include "ferrite/nn/recurrent/detail/recurrence.h"
#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

/// One row of one step of the backward pass. dh and dc come in whole and leave as what does not go through a product.
template <class T>
struct RowBack {
  const T* saved;
  const T* vectors;   ///< the cell's, or null
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

/// One row of a cell with late gates: from the cotangent of their operand to those of the gates before and of h.
template <class T>
struct LateBack {
  const T* product;  ///< the cotangent of the operand
  const T* saved;
  const T* before;  ///< h before this step
  T* d;             ///< the places of this row
  T* operand;       ///< it goes here, for the gradient of the weights
  T* dh;
  std::int64_t H;
};

/// What a cell's folder defines, for f32 and f64 of a level.
template <class T>
struct CellKernels {
  /// i [rows, G gates apart] = x W_ih.
  void (*input_product)(const KernelWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row, T* i,
                        std::int64_t i_gate, std::int64_t i_row) = nullptr;
  void (*step)(const KernelWeights<T>& w, const RecurrenceStep<T>& s) = nullptr;
  void (*row_back)(const RowBack<T>& s) = nullptr;
  void (*late_back)(const LateBack<T>& s) = nullptr;  ///< null: no gate is late
};
/// Of the level in use.
template <class T>
const CellKernels<T>& kernels_of(const GatedCell& cell) {
  return cell.kernels->of<T>();
}

/// What all cells share.

template <class T>
struct RecurrenceKernels {
  /// Elements of memory that `rows` needs for so many rows.
  std::int64_t (*memory)(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t rows);
  /// The rows [begin, end) of a batch through all steps.
  void (*rows)(const CellKernels<T>& cell, const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin,
               std::int64_t end, T* memory);
  /// to [rows, to_row] = a . w, or += with `add`; whole packets of `to` are written.
  void (*product_back)(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to,
                       std::int64_t to_row, bool add);
  /// to [n] += more [n].
  void (*add)(T* to, const T* more, std::int64_t n);
  /// to [n] = the sum of `count` rows, `row_step` apart, ascending for each element.
  void (*sum_rows)(const T* rows, std::int64_t row_step, std::int64_t count, std::int64_t n, T* to);
};
/// Of the level in use.
extern const ferrite::detail::FloatTablesInUse<RecurrenceKernels> recurrence_in_use;

}  // namespace ferrite::nn::detail
