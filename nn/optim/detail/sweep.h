#pragma once
/// Updates of RMSprop and of stochastic gradient descent in place, where nobody records: one sweep over memory.
#include <memory>
#include <vector>

#include "ferrite/nn/optim/detail/sweep_kernel.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// The states of an optimiser, by parameter; empty where its rule has none.
struct SweepStates {
  std::vector<State> square{}, mean{}, velocity{};
};

/// An optimiser's step as sweeps, in two steps of its own: all that may throw is done by `prepare`. The same bits as
/// the operations of the optimiser.
class Sweeps {
 public:
  Sweeps(const SweepRule& rule, SweepStates states);
  ~Sweeps();
  const SweepStates& states() const { return states_; }

  /// Forgets what a step that threw has prepared.
  void begin();
  /// Whether the i-th parameter can be updated so: nobody else holds the buffers of its states. Its gradient and the
  /// rate have its dtype and stay where they are until `run`. Throws std::bad_alloc.
  bool prepare(const Variable& w, std::size_t i, const Tensor& grad, const Tensor& rate);
  /// Updates what was prepared. Throws nothing.
  void run();

 private:
  struct Pending;
  SweepRule rule_;
  SweepStates states_;
  std::vector<Pending> pending_;
};

}  // namespace ferrite::nn::detail
