#pragma once
/// Spreading the states of an optimiser over the ranks, each of which keeps a part while it trains.
#include <map>
#include <vector>

#include "ferrite/distributed/detail/link.h"
#include "ferrite/distributed/world.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::mpi::detail {

/// Returns the rank that updates each parameter: consecutive ones, with about equally many elements on each rank.
std::vector<int> owners_of(const std::vector<Parameter>& parameters, int ranks);

/// Sends the new values of the parameters that each rank owns to all ranks.
class ParameterGathering {
 public:
  ParameterGathering(const World& world, const std::vector<Parameter>& parameters, const std::vector<int>& owner);
  void run() const;

 private:
  void gather(Dtype dtype, const Route& route) const;

  const World& world_;
  std::vector<Parameter> parameters_;
  std::vector<int> owner_;
  std::map<Dtype, Route> routes_;
};

/// An optimiser of all parameters on every rank, whose states of other ranks' parameters take no memory: all elements
/// of such a state share one zero.
class SpreadStates {
 public:
  SpreadStates(const World& world, nn::Optimizer& optimizer);

  /// Makes one update. `gradients` are those of all parameters, the same on every rank.
  void step(const Tensors& gradients) const;
  /// Collects all states on every rank, or on rank 0 alone unless `everywhere`.
  void make_whole(bool everywhere) const;
  /// Frees the states of other ranks' parameters.
  void release() const;

 private:
  template <class F>
  void for_each_own_state(F f) const;

  const World& world_;
  nn::Optimizer& optimizer_;
  std::vector<int> owner_;  ///< rank that updates each parameter
  ParameterGathering gathering_;
};

}  // namespace ferrite::mpi::detail
