#pragma once
/// Accumulates the gradients of several batches for one update.
#include <cstdint>
#include <vector>

#include "ferrite/tensor/tensor.h"

namespace ferrite::nn {

/// Sums the gradients of several batches, for updates of larger batches than memory holds:
///
///   nn::GradientAccumulator sum(4);
///   for (batch) {
///     if (sum.add(tape.grad(loss, net.parameters()))) adam.step(sum.take());
///   }
///
/// The sum of means over batches is not the mean over all samples: `mean` divides by the number of batches.
class GradientAccumulator {
 public:
  /// Makes sums over `batches` batches for each update; with `mean`, `take` divides them by that number. Throws
  /// ValueError unless `batches` is at least 1.
  explicit GradientAccumulator(std::int64_t batches, bool mean = false);

  /// Adds the gradients of a batch and returns whether the number of batches is reached. An undefined gradient adds
  /// nothing; a sum stays undefined if it is undefined in every batch. Throws ValueError if the number of gradients
  /// changes or the number of batches was already reached, ShapeError and DtypeError if a gradient differs from before,
  /// TraceError inside a compiled function; a call that throws adds nothing.
  bool add(const Tensors& grads);
  /// Returns the number of batches since the last `take`.
  std::int64_t count() const { return count_; }
  /// Returns the sums or means and starts over. Throws ValueError when nothing was added, TraceError inside a compiled
  /// function.
  Tensors take();

 private:
  std::int64_t batches_, count_ = 0;
  bool mean_;
  std::vector<Tensor> sums_;
};

}  // namespace ferrite::nn
