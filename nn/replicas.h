#pragma once
/// Sums over copies of a model that train together, each on its own part of a batch.
#include <functional>

#include "ferrite/autograd/custom_function.h"

namespace ferrite::nn {

/// Sums tensors over the replicas of a model, copies that train together on parts of a batch, by a function that you
/// provide: in threads, over sockets, with MPI_Allreduce. Passed as `Context::replicas`, it makes batch norms that
/// train compute their mean and variance over the batches of all replicas, as torch.nn.SyncBatchNorm does.
///
///   const nn::Replicas replicas([&](const Tensor& x) { return my_all_reduce(x); });
///   const Tensor y = net(x, {.replicas = &replicas});
///
/// Each replica calls the function as often as the others and in the same order, forward and backward, and waits for
/// them; all get the same bits. The function reads values, so calls are eager: `trace` and `compile` throw TraceError.
/// Gradients are those of the sum of all replicas' losses. The gradient of x is complete; that of a parameter is the
/// replica's share, to be summed over the replicas before a step of an optimiser.
class Replicas {
 public:
  /// Maps x of any shape, f32 or f64, to the sum of all replicas' x, of the same shape and dtype.
  using Sum = std::function<Tensor(const Tensor& x)>;

  /// Wraps the function that sums. Throws ValueError for a null function.
  explicit Replicas(Sum sum);

  /// Returns the sum of x over all replicas; its gradient is the sum of all replicas' gradients. Throws ShapeError or
  /// DtypeError if the function returns another shape or dtype than that of x, and whatever the function throws.
  Tensor sum(const Tensor& x) const;

 private:
  CustomFunction sum_;
};

}  // namespace ferrite::nn
