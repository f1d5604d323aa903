#pragma once
/// Values of a program, or its gradients of first and second order with respect to all floats that it depends on.
#include <vector>

#include "ferrite/autograd/tape.h"

namespace support {

/// Returns one number to which every float result contributes with different weights.
inline ferrite::Tensor weighted_sum(const ferrite::Tensors& list) {
  using namespace ferrite;
  Tensor total = zeros({});
  double weight = 1;
  for (const Tensor& x : list)
    total = total + sum(x.dtype() == Dtype::f32 ? x : cast(x, Dtype::f32)) * (weight *= 0.75);
  return total;
}

/// Returns, for order 0, f(in); for order 1, the gradients of its weighted sum with respect to the float inputs, then
/// the parameters; for order 2, the gradients of the weighted sum of these. What depends on none of them gives the sum
/// itself.
template <class F>
ferrite::Tensors derivative(const F& f, const ferrite::Tensors& in, const std::vector<ferrite::Parameter>& parameters,
                            int order) {
  using namespace ferrite;
  if (order == 0) return f(in);
  const auto depends = [](const Tensor& x) { return x.tape_slot() != 0; };
  Tape tape;
  Tensors given, variables;
  for (const Tensor& x : in) {
    given.push_back(is_float(x.dtype()) ? tape.watch(x) : x);
    if (is_float(x.dtype())) variables.push_back(given.back());
  }
  for (const Parameter& p : parameters) variables.push_back(p.value());
  Tensor total = weighted_sum(f(given));
  if (!depends(total)) return {total};
  const Tensors g = tape.grad(total, variables, {.retain = order == 2, .create_graph = order == 2});
  if (order == 1) return g;
  total = weighted_sum(g);
  return depends(total) ? tape.grad(total, variables) : Tensors{total};
}

}  // namespace support
