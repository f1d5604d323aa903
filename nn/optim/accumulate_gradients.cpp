/// Accumulation of gradients over several batches.
#include "ferrite/nn/optim/accumulate_gradients.h"

#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {

GradientAccumulator::GradientAccumulator(std::int64_t batches, bool mean) : batches_(batches), mean_(mean) {
  if (batches < 1)
    throw ValueError("gradient accumulator: the number of batches must be positive, got " + std::to_string(batches));
}

bool GradientAccumulator::add(const Tensors& grads) {
  if (ferrite::detail::frame().tracing)
    throw TraceError("gradient accumulator: its sums are no part of the program that is traced; add outside of it");
  if (count_ == batches_)
    throw ValueError("gradient accumulator: " + std::to_string(count_) + " batches are summed already; take them");
  if (count_ > 0 && grads.size() != sums_.size())
    throw ValueError("gradient accumulator: " + std::to_string(grads.size()) + " gradients, there were " +
                     std::to_string(sums_.size()) + " before");
  const NewFrame frame;  // sums are not part of a gradient
  std::vector<Tensor> next(grads.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const Tensor& g = grads[i];
    const bool had = count_ > 0 && sums_[i].defined();
    if (g.defined() && had && g.shape() != sums_[i].shape())
      throw ShapeError("gradient accumulator: gradient " + std::to_string(i) + " has shape " + g.shape().str() +
                       ", it had " + sums_[i].shape().str());
    if (g.defined() && had && g.dtype() != sums_[i].dtype())
      throw DtypeError("gradient accumulator: gradient " + std::to_string(i) + " is " + g.spec().str() + ", it was " +
                       sums_[i].spec().str());
    next[i] = !had ? g : g.defined() ? sums_[i] + g : sums_[i];
  }
  sums_ = std::move(next);
  return ++count_ == batches_;
}

Tensors GradientAccumulator::take() {
  if (ferrite::detail::frame().tracing)
    throw TraceError(
        "gradient accumulator: its sums are no part of the program that is traced; take them outside of it");
  if (count_ == 0) throw ValueError("gradient accumulator: no gradients were added");
  const NewFrame frame;
  Tensors out;
  for (const Tensor& s : sums_) out.push_back(mean_ && s.defined() ? s / static_cast<double>(count_) : s);
  sums_.clear();
  count_ = 0;
  return out;
}

}  // namespace ferrite::nn
