/// Clipping of gradients.
#include <cmath>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

/// What the norms of tensors are put together from: sums of powers, or the largest.
Tensor part_of_norm(const Tensor& g, double order) {
  if (order == 2) return sum(square(g));
  if (order == 1) return sum(abs(g));
  if (std::isinf(order)) return g.numel() > 0 ? amax(abs(g)) : zeros({}, g.dtype());
  return sum(pow(abs(g), order));
}

Tensor whole_norm(const Tensor& total, double order) {
  if (order == 2) return sqrt(total);
  if (order == 1 || std::isinf(order)) return total;
  return pow(total, 1 / order);
}

}  // namespace

ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm, double order) {
  if (!(max_norm > 0)) throw ValueError("clip_grad_norm: max_norm must be positive, got " + std::to_string(max_norm));
  if (!(order > 0)) throw ValueError("clip_grad_norm: the order must be positive, got " + std::to_string(order));
  Tensor total;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const Tensor part = part_of_norm(g, order);
    total = !total.defined() ? part : std::isinf(order) ? maximum(total, part) : total + part;
  }
  if (!total.defined())
    throw ValueError("clip_grad_norm: no gradient of " + std::to_string(grads.size()) +
                     " is defined; was the loss computed from these parameters?");
  ClippedGradients out;
  out.norm = whole_norm(total, order);
  const Tensor scale = minimum(max_norm / (out.norm + 1e-6), 1.0);
  for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g * scale : Tensor());
  return out;
}

Tensors clip_grad_value(const Tensors& grads, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ValueError("clip_grad_value: the value must be finite and positive, got " + std::to_string(value));
  Tensors out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? clamp(g, -value, value) : Tensor());
  return out;
}

}  // namespace ferrite::nn
