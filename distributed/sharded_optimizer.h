#pragma once
/// An optimiser whose states are spread over the ranks.
#include <functional>
#include <memory>
#include <vector>

#include "ferrite/distributed/world.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::mpi {

/// Every rank keeps the states of its part of the parameters, updates these, and gets the others' new values from their
/// ranks (the first stage of ZeRO, arXiv 1910.02054). The bits are those of one optimiser of all parameters, as far as
/// that updates each parameter by its own gradient, as all of the library do.
///
///   mpi::ShardedOptimizer adam(world, net.parameters(), [](std::vector<Parameter> p) {
///     return std::make_unique<nn::Adam>(std::move(p), nn::AdamOptions{.learning_rate = 3e-4});
///   });
///   mpi::DataParallel dp(world, net, adam);
class ShardedOptimizer {
 public:
  using Make = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>;

  /// `make` is called with consecutive parameters, about as many elements on each rank. Throws ValueError for a null
  /// function, one that gives none, and for no parameters; what `make` throws. The world must outlive it.
  ShardedOptimizer(const World& world, std::vector<Parameter> parameters, Make make);
  ~ShardedOptimizer();
  ShardedOptimizer(const ShardedOptimizer&) = delete;
  ShardedOptimizer& operator=(const ShardedOptimizer&) = delete;

  /// One update by all ranks: gradients of all parameters, the same on every rank. Throws as nn::Optimizer::step, and
  /// RankError.
  void step(const Tensors& gradients) const;
  /// On every rank. Throws ValueError unless it is finite and not negative.
  void set_learning_rate(double rate) const;

  /// All of them.
  const std::vector<Parameter>& parameters() const noexcept;
  /// That of this rank's part; null where it has none: there are more ranks than parameters.
  const nn::Optimizer* own() const noexcept;
  /// Which rank updates a parameter.
  int owner(std::size_t parameter) const;

  /// An optimiser of all parameters with all states, on every rank: to save. All ranks call it.
  std::unique_ptr<nn::Optimizer> whole() const;
  /// Takes this rank's states from an optimiser of these parameters, as `fresh` makes it. Throws ValueError where one
  /// is missing; nothing has changed then.
  void take(const nn::Optimizer& whole) const;
  /// An optimiser of all parameters without their states' values.
  std::unique_ptr<nn::Optimizer> fresh() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferrite::mpi
