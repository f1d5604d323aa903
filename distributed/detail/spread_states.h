#pragma once
/// The states of an optimiser of which each rank keeps a part while it trains.
#include <map>
#include <vector>

#include "ferrite/distributed/detail/link.h"
#include "ferrite/distributed/world.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::mpi::detail {

/// Which rank updates each parameter: consecutive ones, about as many elements on each rank.
std::vector<int> owners_of(const std::vector<Parameter>& parameters, int ranks);

/// Every rank's new values of the parameters that it owns, to all.
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

/// One optimiser, the same object on every rank, whose states of parameters of others hold no memory: all elements of
/// such a state are one zero.
class SpreadStates {
 public:
  SpreadStates(const World& world, nn::Optimizer& optimizer);

  /// One update: gradients of all parameters, the same on every rank.
  void step(const Tensors& gradients) const;
  /// Rank 0 has all states, or every rank.
  void make_whole(bool everywhere) const;
  /// Lets go of the states of others' parameters.
  void release() const;

 private:
  template <class F>
  void for_each_own_state(F f) const;

  const World& world_;
  nn::Optimizer& optimizer_;
  std::vector<int> owner_;  ///< by parameter
  ParameterGathering gathering_;
};

}  // namespace ferrite::mpi::detail
