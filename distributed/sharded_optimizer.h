#pragma once
/// An optimiser whose states are spread over the ranks.
#include <functional>
#include <memory>
#include <vector>

#include "ferrite/distributed/world.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::mpi {

/// An optimiser of which every rank keeps the states of its part of the parameters. A rank updates its own parameters
/// and gets the new values of the others from their ranks (the first stage of ZeRO, arXiv 1910.02054). The bits are
/// those of one optimiser of all parameters, provided that it updates each parameter by its own gradient alone, as all
/// optimisers of the library do.
///
///   mpi::ShardedOptimizer adam(world, net.parameters(), [](std::vector<Parameter> p) {
///     return std::make_unique<nn::Adam>(std::move(p), nn::AdamOptions{.learning_rate = 3e-4});
///   });
///   mpi::DataParallel dp(world, net, adam);
class ShardedOptimizer {
 public:
  /// A function that makes an optimiser of some of the parameters.
  using Make = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>;

  /// Makes this rank's optimiser by calling `make` with consecutive parameters, about equally many elements on each
  /// rank. Throws ValueError for a null function, one that returns null, and no parameters; and what `make` throws. The
  /// world must outlive it.
  ShardedOptimizer(const World& world, std::vector<Parameter> parameters, Make make);
  ~ShardedOptimizer();
  ShardedOptimizer(const ShardedOptimizer&) = delete;
  ShardedOptimizer& operator=(const ShardedOptimizer&) = delete;

  /// Makes one update with all ranks. `gradients` are those of all parameters, the same on every rank. Throws what
  /// nn::Optimizer::step throws, and RankError.
  void step(const Tensors& gradients) const;
  /// Sets the learning rate of this rank's part; call it on every rank. Throws ValueError unless it is finite and not
  /// negative.
  void set_learning_rate(double rate) const;

  /// Returns the parameters of all ranks.
  const std::vector<Parameter>& parameters() const noexcept;
  /// Returns the optimiser of this rank's part; null if the rank has no parameters.
  const nn::Optimizer* own() const noexcept;
  /// Returns the rank that updates a parameter, given by its index in `parameters()`.
  int owner(std::size_t parameter) const;

  /// Returns an optimiser of all parameters with all states, on every rank, to save it. All ranks call it.
  std::unique_ptr<nn::Optimizer> whole() const;
  /// Copies this rank's states from an optimiser of all parameters, such as `fresh` makes. Throws ValueError when a
  /// state is missing; nothing has changed then.
  void take(const nn::Optimizer& whole) const;
  /// Makes a new optimiser of all parameters, whose states have their first values, not those of this one.
  std::unique_ptr<nn::Optimizer> fresh() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferrite::mpi
