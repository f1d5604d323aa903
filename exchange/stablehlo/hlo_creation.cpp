/// Lowering of operations that create tensors.
#include "ferrite/exchange/stablehlo/hlo_lowering.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ArangeAttrs;
using ferrite::detail::FullAttrs;

HloValues full(HloBuilder& b, const HloCall& c) { return {b.constant(c.as<FullAttrs>().value, c.out[0])}; }

/// Floats are computed here, in f64 as the operation does: not every target has that. Where an extent may stay open
/// the program computes them.
HloValue evaluated(HloBuilder& b, const HloCall& c) {
  const NewFrame frame;
  return b.constant(c.op.apply({}, c.attrs)[0]);
}

HloValues arange(HloBuilder& b, const HloCall& c) {
  const auto [begin, step, count, dtype] = c.as<ArangeAttrs>();
  const bool real = begin.is_floating() || step.is_floating();
  if (real && !b.style().comparable) return {evaluated(b, c)};
  HloValue x = b.iota({c.out[0].shape, Dtype::i64}, 0);
  if (real) x = b.convert(x, Dtype::f64);
  if (step.real() != 1) x = b.multiply(x, b.constant_like(step, x));
  if (begin.real() != 0) x = b.add(x, b.constant_like(begin, x));
  return {b.convert(x, c.out[0].dtype)};
}

}  // namespace

HloFamily hlo_creation() {
  static constexpr NamedHloLowering list[] = {{"full", full}, {"arange", arange}};
  return list;
}

}  // namespace ferrite::exchange::detail
