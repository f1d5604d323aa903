/// Sums over the replicas of a model, with their gradient.
#include "ferrite/nn/replicas.h"

#include <memory>
#include <utility>

namespace ferrite::nn {
namespace {

Tensor checked_sum(const Replicas::Sum& sum, const Tensor& x) {
  const Tensor all = sum(x);
  if (all.shape() != x.shape())
    throw ShapeError("replicas: the sum of " + x.shape().str() + " over all replicas is " + all.shape().str() +
                     "; each must sum tensors of one shape, in one order");
  if (all.dtype() != x.dtype())
    throw DtypeError("replicas: the sum of " + std::string(name_of(x.dtype())) + " over all replicas is " +
                     std::string(name_of(all.dtype())));
  return all;
}

/// Makes the sum a function with a gradient. It is linear and symmetric, so the gradient of a replica's term is the sum
/// of all replicas' cotangents, at every order.
CustomFunction sum_over(Replicas::Sum sum) {
  if (!sum) throw ValueError("replicas: the function that sums is null");
  return custom_function(
      "sum_over_replicas", [sum](const Tensors& x) { return Tensors{checked_sum(sum, x[0])}; },
      [sum](const Tensors&, const Tensors&, const Tensors& g) { return Tensors{sum_over(sum)(g[0])}; });
}

}  // namespace

Replicas::Replicas(Sum sum) : sum_(sum_over(std::move(sum))) {}

Tensor Replicas::sum(const Tensor& x) const { return sum_(x); }

}  // namespace ferrite::nn
