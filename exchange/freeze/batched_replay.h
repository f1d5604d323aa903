#pragma once
/// Linear parts of programs, run on a batch of directions at once.
#include <span>

#include "ferrite/compile/graph.h"

namespace ferrite::exchange::detail {

/// Applies a program to a batch of values of some of its inputs, while the others have one value. The results must be
/// linear in the batched inputs, as derivatives are in their directions. What does not depend on batched inputs is
/// computed once; the rest along a first axis, the batch. What depends on constants alone is computed now, so that a
/// program that records this call sees its value.
class BatchedReplay {
 public:
  /// Prepares the replay of a graph without variables.
  explicit BatchedReplay(const Graph& graph) : graph_(graph) {}

  /// Returns the outputs. `inputs` holds the inputs of the graph; where `batched`, an input has a further, first axis,
  /// of any extent. Batched inputs of different extents must not meet. Each output that depends on batched inputs has
  /// that axis, too: `of_batch` says which do.
  Tensors run(std::span<const Tensor> inputs, std::span<const char> batched);
  /// Returns, by output of the last `run`, whether it has an axis of the batch.
  const std::vector<char>& of_batch() const { return of_batch_; }

 private:
  const Graph& graph_;
  std::vector<char> of_batch_;
};

}  // namespace ferrite::exchange::detail
