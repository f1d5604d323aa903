#pragma once
/// What a cell's folder says besides its kernels: its step and all of its steps, in operations.
#include <span>

#include "ferrite/nn/recurrent/detail/gated_cell.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// SequenceWeights that belong to somebody else: counting handles costs as much as a small step.
struct BorrowedWeights {
  const Tensor *w_ih, *w_hh, *b_ih, *b_hh, *w_hr, *w_ch;  ///< undefined ones for what is left out
  static BorrowedWeights of(const SequenceWeights& w) { return {&w.w_ih, &w.w_hh, &w.b_ih, &w.b_hh, &w.w_hr, &w.w_ch}; }
};

struct CellFunctions {
  /// One step from i = x W_ih + b_ih [B, G H]: the definition.
  RecurrentState (*step)(const Tensor& i, const RecurrentState& before, const SequenceWeights& w);
  /// All steps as one operation.
  Tensors (*sequence)(const Tensor& x, const RecurrentState& before, const BorrowedWeights& w,
                      const SequenceOptions& options);
};

/// What a folder adds to nn::operations() and nn::composites().
struct CellOperations {
  const Primitive* sequence;
  const Primitive* gradient;
  std::span<const Primitive* const> steps;
};

}  // namespace ferrite::nn::detail
