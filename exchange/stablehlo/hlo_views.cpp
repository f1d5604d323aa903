/// Lowering of views, concatenation and padding.
#include <algorithm>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::PadAttrs;
using ferrite::detail::PermuteAttrs;
using ferrite::detail::SelectAttrs;
using ferrite::detail::SliceAttrs;

HloValues reshape(HloBuilder& b, const HloCall& c) { return {b.reshape(c.in[0], c.out[0].shape)}; }
HloValues contiguous(HloBuilder&, const HloCall& c) { return {c.in[0]}; }
HloValues permute(HloBuilder& b, const HloCall& c) { return {b.transpose(c.in[0], c.as<PermuteAttrs>().order)}; }
HloValues expand(HloBuilder& b, const HloCall& c) { return {b.broadcast(c.in[0], c.out[0].shape)}; }

/// A step backwards is a step forwards, reversed.
HloValues slice(HloBuilder& b, const HloCall& c) {
  const auto [axis, begin, count, step] = c.as<SliceAttrs>();
  if (step > 0) return {b.slice(c.in[0], axis, begin, count, step)};
  return {b.reverse(b.slice(c.in[0], axis, begin + (count - 1) * step, count, -step), axis)};
}

/// One index along an axis, which is dropped.
HloValue picked(HloBuilder& b, const HloValue& x, int axis, std::int64_t index) {
  Shape s = x.shape();
  s.erase(axis);
  return b.reshape(b.slice(x, axis, index, 1), s);
}

HloValues select(HloBuilder& b, const HloCall& c) { return {picked(b, c.in[0], c.axis(), c.as<SelectAttrs>().index)}; }

HloValues unbind(HloBuilder& b, const HloCall& c) {
  HloValues out;
  for (std::size_t i = 0; i < c.out.size(); ++i)
    out.push_back(picked(b, c.in[0], c.axis(), static_cast<std::int64_t>(i)));
  return out;
}

HloValues split(HloBuilder& b, const HloCall& c) {
  HloValues out;
  std::int64_t begin = 0;
  for (const Spec& piece : c.out) {
    const std::int64_t count = piece.shape[c.axis()];
    out.push_back(b.slice(c.in[0], c.axis(), begin, count));
    begin += count;
  }
  return out;
}

HloValues concat(HloBuilder& b, const HloCall& c) {
  HloValues parts;
  for (const HloValue& x : c.in)
    if (x.shape()[c.axis()] > 0) parts.push_back(x);
  return {b.concatenate(parts, c.axis())};
}

HloValues stack(HloBuilder& b, const HloCall& c) {
  HloValues parts;
  for (const HloValue& x : c.in) {
    Shape s = x.shape();
    s.insert(c.axis(), 1);
    parts.push_back(b.reshape(x, s));
  }
  return {b.concatenate(parts, c.axis())};
}

HloValues detach(HloBuilder&, const HloCall& c) { return {c.in[0]}; }

/// The values of a gradient that a program wrote by hand, or of a hook: a program that is exported has no gradients.
HloValues last_operands(HloBuilder&, const HloCall& c) {
  HloValues values;
  for (std::size_t i = c.in.size() - c.out.size(); i < c.in.size(); ++i) values.push_back(c.in[i]);
  return values;
}

HloValues pad(HloBuilder& b, const HloCall& c) {
  const auto [before, after, value] = c.as<PadAttrs>();
  return {b.pad(c.in[0], b.constant(value, {{}, c.in[0].dtype()}), before, after)};
}

}  // namespace

HloFamily hlo_views() {
  static constexpr NamedHloLowering list[] = {{"reshape", reshape},
                                              {"contiguous", contiguous},
                                              {"permute", permute},
                                              {"expand", expand},
                                              {"slice", slice},
                                              {"select", select},
                                              {"unbind", unbind},
                                              {"split", split},
                                              {"concat", concat},
                                              {"stack", stack},
                                              {"pad", pad},
                                              {"detach", detach},
                                              {"custom_gradient", last_operands},
                                              {"gradient_hook", last_operands},
                                              {"recompute", last_operands}};
  return list;
}

}  // namespace ferrite::exchange::detail
