/// Lowering of trigonometric functions, rounding and division with remainder that StableHLO lacks or names otherwise.
#include <limits>
#include <numbers>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

HloValue one(HloBuilder& b, const HloValue& x) { return b.constant_like(1, x); }
HloValue zero(HloBuilder& b, const HloValue& x) { return b.constant_like(0, x); }
HloValue root(HloBuilder& b, const HloValue& x) { return b.elementwise("sqrt", {x}); }
HloValue half(HloBuilder& b, const HloValue& x) { return b.multiply(x, b.constant_like(0.5, x)); }
HloValue angle(HloBuilder& b, const HloValue& y, const HloValue& x) { return b.elementwise("atan2", {y, x}); }

HloValues tan(HloBuilder& b, const HloCall& c) {
  const HloValue sine = b.elementwise("sine", {c.in[0]});
  return {b.divide(sine, b.elementwise("cosine", {c.in[0]}))};
}

/// sqrt((1 - x) (1 + x)).
HloValue other_side(HloBuilder& b, const HloValue& x) {
  const HloValue unit = one(b, x);
  const HloValue below = b.subtract(unit, x);
  return root(b, b.multiply(below, b.add(unit, x)));
}
HloValues asin(HloBuilder& b, const HloCall& c) { return {angle(b, c.in[0], other_side(b, c.in[0]))}; }
HloValues acos(HloBuilder& b, const HloCall& c) { return {angle(b, other_side(b, c.in[0]), c.in[0])}; }
HloValues atan(HloBuilder& b, const HloCall& c) { return {angle(b, c.in[0], one(b, c.in[0]))}; }

/// Where squares and quotients of larger numbers would overflow, and 1 beside them does not count.
HloValue is_large(HloBuilder& b, const HloValue& x) { return b.compare("GT", x, b.constant_like(1e9, x)); }
HloValue log_of_twice(HloBuilder& b, const HloValue& x) {
  const HloValue natural = b.elementwise("log", {x});
  return b.add(natural, b.constant_like(std::numbers::ln2, x));
}
HloValue with_sign_of(HloBuilder& b, const HloValue& x, const HloValue& y) {
  const HloValue negative = b.compare("LT", x, zero(b, x));
  return b.select(negative, b.elementwise("negate", {y}), y);
}

/// (t + t / (t + 1)) / 2 with t = e^x - 1: no cancellation near 0.
HloValues sinh(HloBuilder& b, const HloCall& c) {
  const HloValue size = b.elementwise("abs", {c.in[0]});
  const HloValue t = b.elementwise("exponential_minus_one", {size});
  const HloValue unit = one(b, t);
  const HloValue ratio = b.divide(t, b.add(t, unit));
  const HloValue large = is_large(b, t);
  return {with_sign_of(b, c.in[0], half(b, b.add(t, b.select(large, unit, ratio))))};
}
HloValues cosh(HloBuilder& b, const HloCall& c) {
  const HloValue up = b.elementwise("exponential", {c.in[0]});
  const HloValue down = b.elementwise("exponential", {b.elementwise("negate", {c.in[0]})});
  return {half(b, b.add(up, down))};
}

/// ln(1 + s + s^2 / (1 + sqrt(s^2 + 1))), s = |x|.
HloValues asinh(HloBuilder& b, const HloCall& c) {
  const HloValue size = b.elementwise("abs", {c.in[0]});
  const HloValue square = b.multiply(size, size);
  const HloValue unit = one(b, size);
  const HloValue below = b.add(unit, root(b, b.add(square, unit)));
  const HloValue y = b.elementwise("log_plus_one", {b.add(size, b.divide(square, below))});
  const HloValue large = is_large(b, size);
  return {with_sign_of(b, c.in[0], b.select(large, log_of_twice(b, size), y))};
}
/// ln(1 + t + sqrt(t (t + 2))), t = x - 1; sqrt(t), which is NaN, below 1.
HloValues acosh(HloBuilder& b, const HloCall& c) {
  const HloValue t = b.subtract(c.in[0], one(b, c.in[0]));
  const HloValue product = b.multiply(t, b.add(t, b.constant_like(2, t)));
  const HloValue y = b.elementwise("log_plus_one", {b.add(t, root(b, product))});
  const HloValue large = is_large(b, t);
  const HloValue above = b.select(large, log_of_twice(b, c.in[0]), y);
  const HloValue below = b.compare("LT", t, zero(b, t));
  return {b.select(below, root(b, t), above)};
}
HloValues atanh(HloBuilder& b, const HloCall& c) {
  const HloValue up = b.elementwise("log_plus_one", {c.in[0]});
  const HloValue down = b.elementwise("log_plus_one", {b.elementwise("negate", {c.in[0]})});
  return {half(b, b.subtract(up, down))};
}

/// The larger size times sqrt(1 + (smaller / larger)^2); infinite where one is, also beside NaN.
HloValues hypot(HloBuilder& b, const HloCall& c) {
  const HloValue p = b.elementwise("abs", {c.in[0]});
  const HloValue q = b.elementwise("abs", {c.in[1]});
  const HloValue large = b.elementwise("maximum", {p, q});
  const HloValue small = b.elementwise("minimum", {p, q});
  const HloValue none = b.compare("EQ", large, zero(b, large));
  const HloValue ratio = b.divide(small, b.select(none, one(b, large), large));
  const HloValue scale = root(b, b.add(one(b, ratio), b.multiply(ratio, ratio)));
  const HloValue infinity = b.constant_like(std::numeric_limits<double>::infinity(), p);
  const HloValue first = b.compare("EQ", p, infinity);
  const HloValue infinite = b.elementwise("or", {first, b.compare("EQ", q, infinity)});
  return {b.select(infinite, infinity, b.multiply(large, scale))};
}

/// sin(pi x) / (pi x), 1 at 0.
HloValues sinc(HloBuilder& b, const HloCall& c) {
  const HloValue angle = b.multiply(c.in[0], b.constant_like(std::numbers::pi, c.in[0]));
  const HloValue unit = one(b, angle);
  const HloValue none = b.compare("EQ", angle, zero(b, angle));
  const HloValue ratio = b.divide(b.elementwise("sine", {angle}), b.select(none, unit, angle));
  return {b.select(none, unit, ratio)};
}

HloValues log10(HloBuilder& b, const HloCall& c) {
  const HloValue natural = b.elementwise("log", {c.in[0]});
  return {b.divide(natural, b.constant_like(std::numbers::ln10, natural))};
}

HloValues trunc(HloBuilder& b, const HloCall& c) {
  const HloValue negative = b.compare("LT", c.in[0], zero(b, c.in[0]));
  const HloValue up = b.elementwise("ceil", {c.in[0]});
  return {b.select(negative, up, b.elementwise("floor", {c.in[0]}))};
}

/// Whether a rest is not 0 and has not the divisor's sign.
HloValue crosses(HloBuilder& b, const HloValue& rest, const HloValue& divisor) {
  const HloValue other = b.compare("NE", rest, zero(b, rest));
  const HloValue left = b.compare("LT", rest, zero(b, rest));
  const HloValue right = b.compare("LT", divisor, zero(b, divisor));
  return b.elementwise("and", {other, b.elementwise("xor", {left, right})});
}
HloValues remainder(HloBuilder& b, const HloCall& c) {
  const HloValue rest = b.elementwise("remainder", {c.in[0], c.in[1]});
  const HloValue crossed = crosses(b, rest, c.in[1]);
  return {b.select(crossed, b.add(rest, c.in[1]), rest)};
}
/// (a - remainder) / b, which is whole but for a rounding.
HloValues floor_divide(HloBuilder& b, const HloCall& c) {
  const HloValue rest = b.elementwise("remainder", {c.in[0], c.in[1]});
  const HloValue crossed = crosses(b, rest, c.in[1]);
  const HloValue exact = b.divide(b.subtract(c.in[0], rest), c.in[1]);
  const HloValue whole = is_float(exact.dtype()) ? b.elementwise("round_nearest_even", {exact}) : exact;
  const HloValue below = b.subtract(whole, one(b, whole));
  const HloValue quotient = b.select(crossed, below, whole);
  if (!is_float(exact.dtype())) return {quotient};
  const HloValue none = b.compare("EQ", c.in[1], zero(b, c.in[1]));
  return {b.select(none, b.divide(c.in[0], c.in[1]), quotient)};
}

}  // namespace

HloFamily hlo_math() {
  static constexpr NamedHloLowering list[] = {
      {"tan", tan},   {"asin", asin},   {"acos", acos},   {"atan", atan},           {"sinh", sinh},
      {"cosh", cosh}, {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh},         {"hypot", hypot},
      {"sinc", sinc}, {"log10", log10}, {"trunc", trunc}, {"remainder", remainder}, {"floor_divide", floor_divide}};
  return list;
}

}  // namespace ferrite::exchange::detail
