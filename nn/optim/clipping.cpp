/// Clipping of gradients.
#include <cmath>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

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

/// The parts of all gradients together; undefined for none.
Tensor total_of(const Tensors& grads, double order) {
  Tensor total;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    const Tensor part = part_of_norm(g, order);
    total = !total.defined() ? part : std::isinf(order) ? maximum(total, part) : total + part;
  }
  return total;
}

/// By what gradients are divided first, so that nothing leaves the range of the dtype: a power of two, which rounds
/// nothing, where `total` comes near its ends, and 1 in between. Of orders whose powers reach further it is the largest
/// element.
Tensor divisor_of(const Tensors& grads, const Tensor& total, double order) {
  const bool narrow = total.dtype() == Dtype::f32;
  const Tensor one = full({}, 1, total.dtype());
  if (order != 1 && order != 2 && !std::isinf(order)) {
    const Tensor largest = maximum(total_of(grads, kInfinityNorm), narrow ? 0x1p-100 : 0x1p-900);
    return where(largest <= (narrow ? 0x1.fffffep127 : 0x1.fffffffffffffp1023), largest, one);
  }
  const double high = narrow ? 0x1p100 : 0x1p900, low = narrow ? 0x1p-80 : 0x1p-800;
  const double large = narrow ? 0x1p88 : 0x1p700, small = narrow ? 0x1p-86 : 0x1p-600;
  return where(total > high, one * large, where(total < low, one * small, one));
}

/// Whether it is known that dividing by it changes nothing, so that it may be left out.
bool is_one(const Tensor& divisor) {
  const ferrite::detail::Frame& frame = ferrite::detail::frame();
  if (!frame.recorders.empty() || frame.tracing || divisor.is_abstract()) return false;
  return cast(divisor, Dtype::f64).item<double>() == 1;
}

}  // namespace

ClippedGradients clip_grad_norm(const Tensors& grads, double max_norm, double order) {
  if (!(max_norm > 0)) throw ValueError("clip_grad_norm: max_norm must be positive, got " + Scalar(max_norm).str());
  if (!(order > 0)) throw ValueError("clip_grad_norm: the order must be positive, got " + Scalar(order).str());
  const Tensor total = total_of(grads, order);
  if (!total.defined())
    throw ValueError("clip_grad_norm: no gradient of " + std::to_string(grads.size()) +
                     " is defined; was the loss computed from these parameters?");
  const Tensor divisor = divisor_of(grads, total, order);
  ClippedGradients out;
  if (is_one(divisor)) {
    out.norm = whole_norm(total, order);
    const Tensor scale = minimum(max_norm / (out.norm + 1e-6), 1.0);
    for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g * scale : Tensor());
    return out;
  }
  Tensors small;
  for (const Tensor& g : grads) small.push_back(g.defined() ? g / divisor : Tensor());
  const Tensor norm = whole_norm(total_of(small, order), order);
  out.norm = norm * divisor;
  // min(1, max_norm / (norm divisor + 1e-6)) is pace / divisor, in two steps that stay in range. A NaN stays.
  const Tensor pace = max_norm / (norm + 1e-6 / divisor), one = full({}, 1, total.dtype());
  const Tensor keeps = pace >= divisor;
  const Tensor first = where(keeps, one, divisor), scale = where(keeps, one, pace);
  for (const Tensor& g : grads) out.grads.push_back(g.defined() ? g / first * scale : Tensor());
  return out;
}

Tensors clip_grad_value(const Tensors& grads, double value) {
  if (!(value > 0) || !std::isfinite(value))
    throw ValueError("clip_grad_value: the value must be finite and positive, got " + Scalar(value).str());
  Tensors out;
  for (const Tensor& g : grads) out.push_back(g.defined() ? clamp(g, -value, value) : Tensor());
  return out;
}

}  // namespace ferrite::nn
