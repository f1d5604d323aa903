#pragma once
/// How a cell of gates is declared: the numbers from which the kernels, the operations, the streams and the layers of
/// all cells are made.
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
  const CellFunctions* functions;  ///< its step in operations, its operation
  /// What its folder has for every level (nn/recurrent/detail/recurrence_kernels.h).
  const ferrite::detail::FloatTablesInUse<CellKernels>* kernels;
  int gates = 1;  ///< at most 4
  /// The last gates whose product with W_hh waits for the others: it takes what they store (a GRU's r h), not h.
  int late_gates = 0;
  bool has_memory = false;  ///< c [B, H] besides h
  bool projects = false;    ///< whether h may be projected to P < H by W_hr
  int vectors = 0;          ///< weights [H] that multiply unit by unit
  bool passes_h = false;    ///< whether the step reads h unit by unit, too, besides the product
  int saved = 0;            ///< places that a step saves for the gradient
  int saved_c = 0;          ///< the one of c after the step

  // Cotangents of one step, as the backward pass keeps them for the sums over all steps.
  int places = gates + vectors;
  int input_place = 0;                  ///< the first of G places: cotangents of x W_ih + b_ih
  int product_place[4] = {0, 1, 2, 3};  ///< by gate: the cotangent of h W_hh + b_hh
  int vector_place = gates;             ///< the first of V places, whose sums are the vectors' gradients

  constexpr int early_gates() const { return gates - late_gates; }
};

/// Gates whose columns in W_hh and whose places lie side by side and meet the same operand.
struct GateBlock {
  int gate, count, place;
  bool late;
};
/// The blocks of a cell, at most 4; returns how many.
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

}  // namespace ferrite::nn::detail
