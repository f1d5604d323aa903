#pragma once
/// The steps of one direction of a recurrent layer as one kernel: the input product of many steps at once, then one
/// product per step, whose gates are finished before the next packet of units begins, with the state in place. It
/// rounds like the composition (nn/recurrent/steps.cpp). The kernels of a level (tensor/kernel/level.h) are declared at
/// the end.
#include <cstdint>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/weights.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/levels.h"

// ---- the weights as kernels read them ------------------------------------------------------------------

namespace ferrite::nn::detail {

using ferrite::detail::GateMatrix;

/// W_hh in two parts, because the late gates multiply another operand than h (`GatedCell::late_gates`).
template <class T>
struct EarlyAndLate {
  GateMatrix<T> early;
  GateMatrix<T> late;  ///< the columns of the late gates; empty in most cells
};

/// The weights as kernels read them: matrices, packed or row-major, and vectors; null for those that a cell lacks.
template <class T>
using KernelWeights = RecurrentWeights<GateMatrix<T>, const T*, EarlyAndLate<T>>;

// ---- the steps -----------------------------------------------------------------------------------------

/// Rows of adjacent elements, at data + t * step + b * row for step t and row b.
template <class P>
struct Rows {
  P data = nullptr;
  std::int64_t step = 0;
  std::int64_t row = 0;
  [[gnu::always_inline]] P at(std::int64_t t, std::int64_t b) const { return data + t * step + b * row; }
  [[gnu::always_inline]] explicit operator bool() const { return data != nullptr; }
};

/// The operands of one direction: T steps, B rows of D features, H units, states of width P; lengths and resets may be
/// absent.
template <class T>
struct Recurrence {
  const GatedCell* cell;
  std::int64_t T_, B, D, H, P;
  bool reverse;
  Rows<const T*> x;    ///< the input, rows of D
  KernelWeights<T> w;  ///< in the form that the pass, forward or backward, reads
  const T* h0;         ///< the first h, [B, P]
  const T* c0;         ///< the first c, [B, H], or null
  const std::int64_t* lengths;
  Rows<const bool*> resets;

  [[gnu::always_inline]] std::int64_t columns() const { return cell->gates * H; }
  [[gnu::always_inline]] std::int64_t time(std::int64_t n) const { return reverse ? T_ - 1 - n : n; }
  [[gnu::always_inline]] bool valid(std::int64_t t, std::int64_t b) const { return !lengths || t < lengths[b]; }
  /// Returns whether the state is reset before the n-th step in the order of computation.
  [[gnu::always_inline]] bool resets_at(std::int64_t n, std::int64_t b) const {
    if (!resets || (reverse && n == 0)) return false;
    const std::int64_t t = reverse ? time(n) + 1 : time(n);
    return valid(t, b) && *resets.at(t, b);
  }
};

/// The results of the forward pass: outputs y, the last states, and what is saved for the gradient.
template <class T>
struct RecurrenceOut {
  Rows<T*> y;
  T* h;      ///< the last h, [B, P]
  T* c;      ///< the last c, [B, H], or null
  T* saved;  ///< S places per row for the gradient, [T, B, S H]; null: nothing is saved
};
template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out);

/// The operands and results of one step of some rows: products, gates, the new state.
template <class T>
struct RecurrenceStep {
  std::int64_t rows;
  T* i;  ///< x W_ih, with gates i_gate apart; overwritten by the values that the step stores or saves
  std::int64_t i_gate, i_row;
  const T* x = nullptr;  ///< x with one feature, rows x_row apart, which the gates multiply in place of reading i
  std::int64_t x_row = 0;
  bool save;
  const T* h;  ///< h before the step, rows P_ apart
  T* next;     ///< h after the step, rows P_ apart
  const T* c;  ///< c before the step, rows H_ apart; or null
  T* c_next;   ///< c after the step; may be the same memory as c
  T* between;  ///< memory for rows of H_, the operands of a second product
  std::int64_t P_, H_;
  T* y;  ///< outputs, exactly P per row
  std::int64_t y_row;
  bool whole_y = false;  ///< with one row: y is written in whole packets, whose next reader waits for no masked store
  const T* product = nullptr;  ///< with one row: h W_hh if it was computed before; then W_hh has no rows
  std::int64_t product_gate = 0;
};

/// Returns whether the gates of a cell multiply x themselves if nothing is saved: with one feature the product is one
/// multiplication per packet. Gates of a cell with late ones do not, because they store values in the product's place.
[[gnu::always_inline]] inline bool gates_take_x(const GatedCell& cell, std::int64_t features) {
  return features == 1 && cell.late_gates == 0;
}

/// The operands and results of the backward pass: from the outputs, what was saved and the cotangents of y (or null) to
/// the cotangents that are wanted. The recurrence's weights are W_ih [D, G H] row-major, the vectors, and the
/// transposes of the others: W_hh [G H, P], with rows in the order of the gates' places, and W_hr [P, H].
template <class T>
struct RecurrenceGrad {
  Rows<const T*> y;
  const T* saved;
  Rows<const T*> dy;          ///< the cotangents of y, or none
  bool wants_state;           ///< whether the cotangents of the first states are wanted
  T* dh;                      ///< [B, P], the cotangent of the last h on entry and of the first one on return
  T* dc;                      ///< [B, H], the cotangent of the last c on entry and of the first one on return; or null
  Rows<T*> dx;                ///< the cotangents of x, or none
  RecurrentWeights<T*> dw{};  ///< the weights' gradients; null where none is wanted
};

/// Runs the backward pass. Weight gradients sum rows in its order, b ascending, in blocks of 256 (docs/numerics.md,
/// rule 6).
template <class T>
void run_recurrence_back(const Recurrence<T>& r, const RecurrenceGrad<T>& g);

/// Returns the number of rows of a batch that one thread takes through time together.
std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row);

// ---- what a level has ----------------------------------------------------------------------------------

/// The operands and results of one row of one step of the backward pass. dh and dc hold the whole cotangents on entry,
/// and on return the parts that do not pass through a product.
template <class T>
struct RowBack {
  const T* saved;
  const T* vectors;   ///< the cell's vectors, or null
  const T* y;         ///< the output of this step
  const T* before;    ///< h before this step
  const T* c_before;  ///< c before this step
  const T* dwhole;    ///< cotangent of o tanh(c): dh, or what comes through a projection
  T* dh;
  T* dc;
  T* d;      ///< the places of this row
  T* whole;  ///< receives o tanh(c), for the gradient of a projection; or null
  std::int64_t H;
};

/// The operands and results of one row of a cell with late gates: from the cotangent of their operand to those of the
/// earlier gates and of h.
template <class T>
struct LateBack {
  const T* product;  ///< the cotangent of the operand
  const T* saved;
  const T* before;  ///< h before this step
  T* d;             ///< the places of this row
  T* operand;       ///< receives the operand, for the gradient of the weights
  T* dh;
  std::int64_t H;
};

/// The kernels that each cell defines, for f32 and f64 of a level.
template <class T>
struct CellKernels {
  /// Computes i = x W_ih for some rows, with gates i_gate apart.
  void (*input_product)(const KernelWeights<T>& w, std::int64_t rows, const T* x, std::int64_t x_row, T* i,
                        std::int64_t i_gate, std::int64_t i_row) = nullptr;
  void (*step)(const KernelWeights<T>& w, const RecurrenceStep<T>& s) = nullptr;
  void (*row_back)(const RowBack<T>& s) = nullptr;
  void (*late_back)(const LateBack<T>& s) = nullptr;  ///< null: no gate is late
};

/// Returns the kernels of a cell for the level in use.
template <class T>
const CellKernels<T>& kernels_of(const GatedCell& cell) {
  return cell.kernels->of<T>();
}

/// The kernels that all cells share, for f32 and f64 of a level.

template <class T>
struct RecurrenceKernels {
  /// Returns the number of elements of memory that `rows` needs for a number of rows.
  std::int64_t (*memory)(const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t rows);
  /// Takes the rows [begin, end) of a batch through all steps.
  void (*rows)(const CellKernels<T>& cell, const Recurrence<T>& r, const RecurrenceOut<T>& out, std::int64_t begin,
               std::int64_t end, T* memory);
  /// Computes to [rows, to_row] = a . w, or += with `add`; whole packets of `to` are written.
  void (*product_back)(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, T* to,
                       std::int64_t to_row, bool add);
  /// Computes y [U packets] = x [K] . w [K, U packets], K at most kBlockK; with a column [K], also sum = x . column.
  using Panel = void (*)(const T* w, std::int64_t K, const T* x, T* y, const T* column, T* sum);
  Panel panels[8];  ///< for U = 1..8, f32 only
  /// Computes to [n] += more [n].
  void (*add)(T* to, const T* more, std::int64_t n);
  /// Computes to [n] = the sum of `count` rows, `row_step` apart, in ascending order for each element.
  void (*sum_rows)(const T* rows, std::int64_t row_step, std::int64_t count, std::int64_t n, T* to);
};

/// The shared kernels of the level in use.
extern const ferrite::detail::FloatTablesInUse<RecurrenceKernels> recurrence_in_use;

}  // namespace ferrite::nn::detail
