#pragma once
/// What copies of a model that train together, each on its own part of a batch, tell each other.
#include <functional>

#include "ferrite/autograd/custom_function.h"

namespace ferrite::nn {

/// Sums over the replicas of a model, by a function of yours: in threads, over sockets, with MPI_Allreduce. Given as
/// `Context::replicas`, batch norms that train take their numbers over the batches of all replicas, as
/// torch.nn.SyncBatchNorm does.
///
///   const nn::Replicas replicas([&](const Tensor& x) { return my_all_reduce(x); });
///   const Tensor y = net(x, {.replicas = &replicas});
///
/// Each replica calls the function as often as the others and in the same order, forward and backward, and waits for
/// them; every one gets the same bits. It reads values: calls are eager, `trace` and `compile` throw TraceError.
/// Gradients are those of the sum of all replicas' losses: of x as they are, of parameters each replica's share, to be
/// summed over the replicas before a step of an optimiser.
class Replicas {
 public:
  /// x of any shape, f32 or f64 -> the sum of all replicas' x, of the same shape and dtype.
  using Sum = std::function<Tensor(const Tensor& x)>;

  /// Throws ValueError for a null function.
  explicit Replicas(Sum sum);

  /// The sum over all replicas; its gradient is the sum of all replicas' gradients. Throws ShapeError or DtypeError
  /// where the function gives another shape or dtype than x's, and what it throws.
  Tensor sum(const Tensor& x) const;

 private:
  CustomFunction sum_;
};

}  // namespace ferrite::nn
