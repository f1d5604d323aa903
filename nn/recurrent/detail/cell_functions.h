#pragma once
/// What a cell's folder says besides its kernels: its step and all of its steps, in operations.
#include <span>

#include "ferrite/nn/recurrent/detail/gated_cell.h"
#include "ferrite/nn/recurrent/steps.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// Points at weights that the caller keeps: counting handles costs as much as a small step.
inline RecurrentWeights<const Tensor*> borrowed(const RecurrentWeights<Tensor>& w) {
  return w.map([](const Tensor& t) { return &t; });
}

struct CellFunctions {
  /// One step from i = x W_ih + b_ih [B, G H]: the definition.
  RecurrentState (*step)(const Tensor& i, const RecurrentState& before, const RecurrentWeights<Tensor>& w);
  /// All steps as one operation. Weights that are left out are undefined tensors.
  Tensors (*sequence)(const Tensor& x, const RecurrentState& before, const RecurrentWeights<const Tensor*>& w,
                      const SequenceOptions& options);
};

/// What a folder adds to nn::operations() and nn::composites().
struct CellOperations {
  const Primitive* sequence;
  const Primitive* gradient;
  std::span<const Primitive* const> steps;
};

}  // namespace ferrite::nn::detail
