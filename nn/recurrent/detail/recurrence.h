#pragma once
/// The steps of one direction of a recurrent layer as one kernel: the input product of many steps at once, then one
/// product a step whose gates are finished before the next packet of units begins, and the state in place. Roundings
/// are those of the composition (nn/recurrent/steps.cpp). What a level (tensor/kernel/level.h) has for that is at the
/// end.
#include <cstdint>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/levels.h"

// ---- the weights as kernels read them ------------------------------------------------------------------

namespace ferrite::nn::detail {

using ferrite::detail::GateMatrix;

/// W_hh, whose late gates meet another operand than h (`GatedCell::late_gates`).
template <class T>
struct EarlyAndLate {
  GateMatrix<T> early;
  GateMatrix<T> late;  ///< empty in most cells
};

/// Weights as kernels read them: matrices packed or in row-major order, vectors; null where a cell has none.
template <class T>
using KernelWeights = RecurrentWeights<GateMatrix<T>, const T*, EarlyAndLate<T>>;

// ---- the steps -----------------------------------------------------------------------------------------

/// Rows of adjacent elements that stand at data + t * step + b * row.
template <class P>
struct Rows {
  P data = nullptr;
  std::int64_t step = 0;
  std::int64_t row = 0;
  [[gnu::always_inline]] P at(std::int64_t t, std::int64_t b) const { return data + t * step + b * row; }
  [[gnu::always_inline]] explicit operator bool() const { return data != nullptr; }
};

/// What one direction computes with. T steps, B rows of D features, H units, states of P; lengths and resets may be
/// absent.
template <class T>
struct Recurrence {
  const GatedCell* cell;
  std::int64_t T_, B, D, H, P;
  bool reverse;
  Rows<const T*> x;    ///< [.., D]
  KernelWeights<T> w;  ///< in the order of the pass at hand
  const T* h0;         ///< [B, P]
  const T* c0;         ///< [B, H] or null
  const std::int64_t* lengths;
  Rows<const bool*> resets;

  [[gnu::always_inline]] std::int64_t columns() const { return cell->gates * H; }
  [[gnu::always_inline]] std::int64_t time(std::int64_t n) const { return reverse ? T_ - 1 - n : n; }
  [[gnu::always_inline]] bool valid(std::int64_t t, std::int64_t b) const { return !lengths || t < lengths[b]; }
  /// Whether the state is reset before the n-th step in the order of computing.
  [[gnu::always_inline]] bool resets_at(std::int64_t n, std::int64_t b) const {
    if (!resets || (reverse && n == 0)) return false;
    const std::int64_t t = reverse ? time(n) + 1 : time(n);
    return valid(t, b) && *resets.at(t, b);
  }
};

/// Forward: outputs y, the last states, and what is saved.
template <class T>
struct RecurrenceOut {
  Rows<T*> y;
  T* h;      ///< [B, P]
  T* c;      ///< [B, H] or null
  T* saved;  ///< [T, B, S H], or null: nothing is saved
};
template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out);

/// One step of some rows: products, gates, the new state.
template <class T>
struct RecurrenceStep {
  std::int64_t rows;
  T* i;  ///< x W_ih, gates i_gate apart; where something is saved, it takes the place
  std::int64_t i_gate, i_row;
  const T* x = nullptr;  ///< x itself, of one feature, rows x_row apart: its product is made where it is read, not in i
  std::int64_t x_row = 0;
  bool save;
  const T* h;  ///< before, rows P_ apart
  T* next;     ///< after, likewise
  const T* c;  ///< before, rows H_ apart; or null
  T* c_next;   ///< after; may be the same
  T* between;  ///< room for rows of H_: what goes from one product to the next
  std::int64_t P_, H_;
  T* y;  ///< outputs, exactly P of a row
  std::int64_t y_row;
  bool whole_y = false;  ///< of one row: y is whole packets, so that whoever reads it next need not wait for a mask
  const T* product = nullptr;  ///< of one row: h W_hh, where it was made before; W_hh has no rows then
  std::int64_t product_gate = 0;
};

/// Whether the gates of a cell take x itself where nothing is saved: with one feature its product is one multiplication
/// for each packet. The gates of a cell with late ones store something in the place of its product.
[[gnu::always_inline]] inline bool gates_take_x(const GatedCell& cell, std::int64_t features) {
  return features == 1 && cell.late_gates == 0;
}

/// Backward: from the outputs, what was saved and the cotangents of y (or null), to those of everything wanted. Of the
/// recurrence's weights it reads W_ih [D, G H] as it stands, the vectors, and the transposes of the others: W_hh [G H,
/// P], its rows in the order of the gates' places, and W_hr [P, H].
template <class T>
struct RecurrenceGrad {
  Rows<const T*> y;
  const T* saved;
  Rows<const T*> dy;          ///< or none
  bool wants_state;           ///< false: what reaches the first state is of no interest
  T* dh;                      ///< [B, P]: from the cotangent of the last state to that of the first
  T* dc;                      ///< likewise [B, H], or null
  Rows<T*> dx;                ///< or none
  RecurrentWeights<T*> dw{};  ///< the weights' gradients; null where none is wanted
};

/// Weight gradients sum rows in the order of the backward pass, b ascending, in blocks of 256 (docs/numerics.md, rule
/// 6).
template <class T>
void run_recurrence_back(const Recurrence<T>& r, const RecurrenceGrad<T>& g);

/// Rows of a batch that one thread takes through time together.
std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row);

// ---- what a level has ----------------------------------------------------------------------------------

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

/// What a cell defines, for f32 and f64 of a level.
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
  /// y [U packets] = x [K] . w [K, U packets], K at most kBlockK. With a column [K], sum = x . column.
  using Panel = void (*)(const T* w, std::int64_t K, const T* x, T* y, const T* column, T* sum);
  Panel panels[8];  ///< of f32, by U from one on
  /// to [n] += more [n].
  void (*add)(T* to, const T* more, std::int64_t n);
  /// to [n] = the sum of `count` rows, `row_step` apart, ascending for each element.
  void (*sum_rows)(const T* rows, std::int64_t row_step, std::int64_t count, std::int64_t n, T* to);
};

/// Of the level in use.
extern const ferrite::detail::FloatTablesInUse<RecurrenceKernels> recurrence_in_use;

}  // namespace ferrite::nn::detail
