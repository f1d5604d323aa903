#pragma once
/// The declarations of cells made of gates, from which the kernels, operations, streams and layers of all cells are
/// made, and the list of all cells that have kernels. Their kernels, forward and backward, are in
/// nn/recurrent/cells_kernel.cpp, their steps in operations in nn/recurrent/gru.cpp and its like.
#include <cstdint>

#include "ferrite/tensor/kernel/levels.h"

namespace ferrite::nn::detail {

struct CellFunctions;
template <class T>
struct CellKernels;

/// A recurrent cell whose G gates are sums of x W_ih + b_ih and h W_hh + b_hh, each a block of H columns. In rows that
/// a gradient reads or writes, a place is H adjacent values.
struct GatedCell {
  const char* name;
  const CellFunctions* functions;  ///< its step in operations, and its operation on sequences
  /// The cell's kernels for the level in use (nn/recurrent/detail/recurrence.h).
  const ferrite::detail::FloatTablesInUse<CellKernels>* kernels;
  int gates = 1;  ///< number of gates G, at most 4
  /// Number of last gates whose product with W_hh waits for the others, because its operand is what they store (a GRU's
  /// r h), not h.
  int late_gates = 0;
  bool has_memory = false;  ///< whether there is a c [B, H] besides h
  bool projects = false;    ///< whether h may be projected to P < H by W_hr
  int vectors = 0;          ///< number of weights [H] that multiply unit by unit, V
  bool passes_h = false;    ///< whether the step also reads h unit by unit, besides the product
  int saved = 0;            ///< number of places that a step saves for the gradient
  int saved_c = 0;          ///< the place of c after the step among them

  // Cotangents of one step, as the backward pass keeps them for the sums over all steps.
  int places = gates + vectors;
  int input_place = 0;                  ///< the first of G places with the cotangents of x W_ih + b_ih
  int product_place[4] = {0, 1, 2, 3};  ///< by gate, the place of the cotangent of h W_hh + b_hh
  int vector_place = gates;             ///< the first of V places, whose sums are the vectors' gradients

  constexpr int early_gates() const { return gates - late_gates; }
};

/// Gates whose columns in W_hh and whose places are adjacent and which have the same operand.
struct GateBlock {
  int gate, count, place;
  bool late;
};

/// Finds the blocks of a cell, at most 4, and returns their number.
constexpr int blocks_of(const GatedCell& c, GateBlock (&blocks)[4]) {
  int n = 0;
  for (int g = 0; g < c.gates; ++g) {
    const bool late = g >= c.early_gates();
    GateBlock* const last = n ? &blocks[n - 1] : nullptr;
    if (last && last->late == late && last->place + last->count == c.product_place[g]) {
      ++last->count;
    } else {
      blocks[n++] = {g, 1, c.product_place[g], late};
    }
  }
  return n;
}

struct CellOperations;
extern const CellOperations gru_operations, gru_reset_before_operations, lstm_operations, peephole_lstm_operations,
    rnn_operations, rnn_relu_operations;

/// The operations of all cells, in the order of nn::operations().
inline constexpr const CellOperations* kCellOperations[] = {
    &gru_operations,          &lstm_operations, &rnn_operations, &rnn_relu_operations, &gru_reset_before_operations,
    &peephole_lstm_operations};

extern const CellFunctions gru_functions, gru_reset_before_functions, lstm_functions, peephole_lstm_functions,
    rnn_functions, rnn_relu_functions;
using CellTables = ferrite::detail::FloatTablesInUse<CellKernels>;
extern const CellTables gru_in_use, gru_reset_before_in_use, lstm_in_use, peephole_lstm_in_use, rnn_in_use,
    rnn_relu_in_use;

/// A GRU with gates r, z, n, which saves r, z, n and h W_hn + b_hn. The cotangents of n differ for x and h, so the
/// places are n for h, r, z, n for x.
inline constexpr GatedCell kGru = {.name = "gru",
                                   .functions = &gru_functions,
                                   .kernels = &gru_in_use,
                                   .gates = 3,
                                   .passes_h = true,
                                   .saved = 4,
                                   .places = 4,
                                   .input_place = 1,
                                   .product_place = {1, 2, 0}};

/// A GRU whose product for n takes r h, and which saves r, z, n.
inline constexpr GatedCell kGruResetBefore = {.name = "gru",
                                              .functions = &gru_reset_before_functions,
                                              .kernels = &gru_reset_before_in_use,
                                              .gates = 3,
                                              .late_gates = 1,
                                              .passes_h = true,
                                              .saved = 3};

/// An LSTM with gates i, f, g, o, which saves these and c'.
inline constexpr GatedCell kLstm = {.name = "lstm",
                                    .functions = &lstm_functions,
                                    .kernels = &lstm_in_use,
                                    .gates = 4,
                                    .has_memory = true,
                                    .projects = true,
                                    .saved = 5,
                                    .saved_c = 4};

/// An LSTM whose vectors are the weights of c in i, of c in f and of c' in o.
inline constexpr GatedCell kPeepholeLstm = {.name = "peephole_lstm",
                                            .functions = &peephole_lstm_functions,
                                            .kernels = &peephole_lstm_in_use,
                                            .gates = 4,
                                            .has_memory = true,
                                            .vectors = 3,
                                            .saved = 5,
                                            .saved_c = 4};
inline constexpr GatedCell kRnn = {.name = "rnn", .functions = &rnn_functions, .kernels = &rnn_in_use};
inline constexpr GatedCell kRnnRelu = {.name = "rnn", .functions = &rnn_relu_functions, .kernels = &rnn_relu_in_use};

}  // namespace ferrite::nn::detail
