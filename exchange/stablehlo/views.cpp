/// What moves elements by rules alone: views, and what joins and pads.
#include <algorithm>

#include "ferrite/exchange/stablehlo/lowering.h"

namespace ferrite::exchange::detail {
namespace {

HloValues reshape(HloBuilder& b, const HloCall& c) { return {b.reshape(c.in[0], c.out[0].shape)}; }
HloValues contiguous(HloBuilder&, const HloCall& c) { return {c.in[0]}; }
HloValues permute(HloBuilder& b, const HloCall& c) { return {b.transpose(c.in[0], c.attrs.get<Shape>("order"))}; }
HloValues expand(HloBuilder& b, const HloCall& c) { return {b.broadcast(c.in[0], c.out[0].shape)}; }

/// A step backwards is a step forwards, reversed.
HloValues slice(HloBuilder& b, const HloCall& c) {
  const std::int64_t begin = c.number("begin"), count = c.number("count"), step = c.number("step");
  if (step > 0) return {b.slice(c.in[0], c.axis(), begin, count, step)};
  return {b.reverse(b.slice(c.in[0], c.axis(), begin + (count - 1) * step, count, -step), c.axis())};
}

/// One index along an axis, which is dropped.
HloValue picked(HloBuilder& b, const HloValue& x, int axis, std::int64_t index) {
  Shape s = x.shape();
  s.erase(axis);
  return b.reshape(b.slice(x, axis, index, 1), s);
}

HloValues select(HloBuilder& b, const HloCall& c) { return {picked(b, c.in[0], c.axis(), c.number("index"))}; }

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

HloValues pad(HloBuilder& b, const HloCall& c) {
  const HloValue value = b.constant(c.attrs.get<Scalar>("value"), {{}, c.in[0].dtype()});
  return {b.pad(c.in[0], value, c.attrs.get<Shape>("before"), c.attrs.get<Shape>("after"))};
}

}  // namespace

HloFamily hlo_views() {
  static constexpr NamedHloLowering list[] = {
      {"reshape", reshape}, {"contiguous", contiguous}, {"permute", permute}, {"expand", expand},
      {"slice", slice},     {"select", select},         {"unbind", unbind},   {"split", split},
      {"concat", concat},   {"stack", stack},           {"pad", pad},         {"detach", detach}};
  return list;
}

}  // namespace ferrite::exchange::detail
