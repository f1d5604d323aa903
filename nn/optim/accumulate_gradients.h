#pragma once
/// Gradients of several batches summed into those of one update.
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
/// The sum of means over batches is not the mean over all: `mean` divides by their number.
class GradientAccumulator {
 public:
  /// Throws ValueError for fewer than 1 batch.
  explicit GradientAccumulator(std::int64_t batches, bool mean = false);

  /// Adds the gradients of a batch. An undefined one adds nothing, and stays undefined where every batch has it so.
  /// True when the number of batches is reached. Throws ValueError for another number of gradients than before and when
  /// the number of batches was reached already, ShapeError and DtypeError where they differ from before, TraceError
  /// inside a compiled function; nothing is added then.
  bool add(const Tensors& grads);
  /// Batches since the last `take`.
  std::int64_t count() const { return count_; }
  /// The sums, or means; the next begin from nothing. Throws ValueError when there are none, TraceError inside a
  /// compiled function.
  Tensors take();

 private:
  std::int64_t batches_, count_ = 0;
  bool mean_;
  std::vector<Tensor> sums_;
};

}  // namespace ferrite::nn
