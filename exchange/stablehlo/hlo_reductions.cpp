/// Lowering of reductions and products.
#include <limits>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

/// The smallest value of a dtype, or the largest.
Scalar extreme(Dtype dtype, bool smallest) {
  return visit_computed(dtype, [&](auto zero) -> Scalar {
    using T = decltype(zero);
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_floating_point_v<T>) return smallest ? -Limits::infinity() : Limits::infinity();
    return smallest ? Limits::min() : Limits::max();
  });
}

HloValue reduce(HloBuilder& b, const HloCall& c, std::string_view op, Scalar init) {
  const HloValue x = b.convert(c.in[0], c.out[0].dtype);
  const Shape axes = c.as<ferrite::detail::ReductionAttrs>().axes;
  if (axes.rank() == 0) return x;
  const HloValue dropped = b.reduce(op, x, b.constant(init, {{}, x.dtype()}), axes);
  return b.reshape(dropped, c.out[0].shape);
}

HloValues sum(HloBuilder& b, const HloCall& c) { return {reduce(b, c, "add", 0)}; }
HloValues prod(HloBuilder& b, const HloCall& c) { return {reduce(b, c, "multiply", 1)}; }
HloValues amax(HloBuilder& b, const HloCall& c) { return {reduce(b, c, "maximum", extreme(c.out[0].dtype, true))}; }
HloValues amin(HloBuilder& b, const HloCall& c) { return {reduce(b, c, "minimum", extreme(c.out[0].dtype, false))}; }

/// The smallest index among those that hold the extreme value; where there is a NaN, among those that hold NaN.
HloValues arg_extreme(HloBuilder& b, const HloCall& c, bool largest) {
  const HloValue& x = c.in[0];
  const int axis = c.axis();
  Shape kept = x.shape();
  kept[axis] = 1;
  const HloValue none = b.constant(extreme(x.dtype(), largest), {{}, x.dtype()});
  const HloValue best = b.reduce(largest ? "maximum" : "minimum", x, none, {axis});
  HloValue chosen = b.compare("EQ", x, b.broadcast(b.reshape(best, kept), x.shape()));
  if (is_float(x.dtype())) chosen = b.elementwise("or", {chosen, b.compare("NE", x, x)});
  const HloValue index = b.iota({x.shape(), Dtype::i64}, axis);
  const std::int64_t beyond = std::numeric_limits<std::int64_t>::max();
  const HloValue candidates = b.select(chosen, index, b.constant_like(beyond, index));
  const HloValue first = b.reduce("minimum", candidates, b.constant(beyond, {{}, Dtype::i64}), {axis});
  return {b.reshape(first, c.out[0].shape)};
}

HloValues argmax(HloBuilder& b, const HloCall& c) { return arg_extreme(b, c, true); }
HloValues argmin(HloBuilder& b, const HloCall& c) { return arg_extreme(b, c, false); }

/// Leading axes of one operand only are rows of one product; else both get the leading axes of the result. A sum of no
/// terms is written as the zero it is: not every implementation takes it.
HloValues matmul(HloBuilder& b, const HloCall& c) {
  const HloValue &x = c.in[0], &y = c.in[1];
  const Shape& out = c.out[0].shape;
  if (x.shape()[-1] == 0) return {b.constant(0, c.out[0])};
  if (y.shape().rank() == 2) return {b.dot(x, y, x.shape().rank() - 1, 0, 0, out)};
  const int lead = out.rank() - 2;
  const auto widened = [&](const HloValue& v) {
    Shape s = out;
    s[-2] = v.shape()[-2];
    s[-1] = v.shape()[-1];
    return b.broadcast(v, s);
  };
  const HloValue left = widened(x), right = widened(y);
  return {b.dot(left, right, lead + 1, lead, lead, out)};
}

}  // namespace

HloFamily hlo_reductions() {
  static constexpr NamedHloLowering list[] = {{"sum", sum},       {"prod", prod},     {"amax", amax},    {"amin", amin},
                                              {"argmax", argmax}, {"argmin", argmin}, {"matmul", matmul}};
  return list;
}

}  // namespace ferrite::exchange::detail
