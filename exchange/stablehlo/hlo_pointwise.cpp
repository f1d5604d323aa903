/// Lowering of pointwise operations that StableHLO lacks or names otherwise.
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/exchange/stablehlo/hlo_lowering.h"

namespace ferrite::exchange::detail {
namespace {

HloValues clamp(HloBuilder& b, const HloCall& c) { return {b.elementwise("clamp", {c.in[1], c.in[0], c.in[2]})}; }

HloValues square(HloBuilder& b, const HloCall& c) { return {b.multiply(c.in[0], c.in[0])}; }

HloValues reciprocal(HloBuilder& b, const HloCall& c) { return {b.divide(b.constant_like(1, c.in[0]), c.in[0])}; }

/// A power, not e^(x ln 2): the product's rounding would grow with x.
HloValues exp2(HloBuilder& b, const HloCall& c) {
  return {b.elementwise("power", {b.constant_like(2, c.in[0]), c.in[0]})};
}

HloValues log2(HloBuilder& b, const HloCall& c) {
  const HloValue natural = b.elementwise("log", {c.in[0]});
  return {b.divide(natural, b.constant_like(std::numbers::ln2, natural))};
}

/// StableHLO's maximum gives NaN where either operand is, as ours does.
HloValues relu(HloBuilder& b, const HloCall& c) {
  return {b.elementwise("maximum", {c.in[0], b.constant_like(0, c.in[0])})};
}

HloValues softplus(HloBuilder& b, const HloCall& c) {
  const HloValue& x = c.in[0];
  const HloValue tail = b.elementwise("exponential", {b.elementwise("negate", {b.elementwise("abs", {x})})});
  const HloValue positive = b.elementwise("maximum", {x, b.constant_like(0, x)});
  return {b.add(positive, b.elementwise("log_plus_one", {tail}))};
}

HloValues tanh_grad(HloBuilder& b, const HloCall& c) {
  const HloValue& y = c.in[1];
  const HloValue one = b.constant_like(1, y);
  return {b.multiply(c.in[0], b.subtract(one, b.multiply(y, y)))};
}

HloValues sigmoid_grad(HloBuilder& b, const HloCall& c) {
  const HloValue& y = c.in[1];
  return {b.multiply(c.in[0], b.multiply(y, b.subtract(b.constant_like(1, y), y)))};
}

HloValues equal(HloBuilder& b, const HloCall& c) { return {b.compare("EQ", c.in[0], c.in[1])}; }
HloValues less(HloBuilder& b, const HloCall& c) { return {b.compare("LT", c.in[0], c.in[1])}; }
HloValues less_equal(HloBuilder& b, const HloCall& c) { return {b.compare("LE", c.in[0], c.in[1])}; }
HloValues where(HloBuilder& b, const HloCall& c) { return {b.select(c.in[0], c.in[1], c.in[2])}; }

/// What does not fit saturates and NaN gives 0: StableHLO leaves both open, so only what fits is converted.
HloValue to_integer(HloBuilder& b, const HloValue& from, Dtype to) {
  const HloValue x = is_storage_only(from.dtype()) ? b.convert(from, Dtype::f32) : from;  // it holds the bounds
  const int bits = static_cast<int>(8 * size_of(to));
  const double bound = std::ldexp(1.0, bits - 1);
  const auto most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  const std::int64_t least = -most - 1;
  const HloValue above = b.compare("GE", x, b.constant_like(bound, x));
  const HloValue below = b.compare("LT", x, b.constant_like(-bound, x));
  const HloValue nan = b.compare("NE", x, x);
  const HloValue outside = b.elementwise("or", {above, b.elementwise("or", {below, nan})});
  const HloValue inside = b.convert(b.select(outside, b.constant_like(0, x), x), to);
  const HloValue capped = b.select(above, b.constant(most, inside.spec), inside);
  return b.select(below, b.constant(least, inside.spec), capped);
}

/// The low bits, as in C++: StableHLO leaves open what happens to what does not fit.
HloValue wrapped(HloBuilder& b, const HloValue& x, Dtype to) {
  const HloValue places = b.constant_like(8 * (size_of(x.dtype()) - size_of(to)), x);
  const HloValue low = b.elementwise("shift_left", {x, places});
  return b.convert(b.elementwise("shift_right_arithmetic", {low, places}), to);
}

HloValues cast(HloBuilder& b, const HloCall& c) {
  const HloValue& x = c.in[0];
  const Dtype to = c.out[0].dtype;
  if (x.dtype() == to) return {x};
  if (to == Dtype::boolean) return {b.compare("NE", x, b.constant_like(0, x))};
  const DtypeKind from = kind_of(x.dtype());
  if (kind_of(to) != DtypeKind::integer) return {b.convert(x, to)};
  if (from == DtypeKind::floating) return {to_integer(b, x, to)};
  if (from == DtypeKind::integer && size_of(to) < size_of(x.dtype())) return {wrapped(b, x, to)};
  return {b.convert(x, to)};
}

}  // namespace

HloFamily hlo_pointwise() {
  static constexpr NamedHloLowering list[] = {{"clamp", clamp},
                                              {"square", square},
                                              {"reciprocal", reciprocal},
                                              {"exp2", exp2},
                                              {"log2", log2},
                                              {"relu", relu},
                                              {"softplus", softplus},
                                              {"tanh_grad", tanh_grad},
                                              {"sigmoid_grad", sigmoid_grad},
                                              {"equal", equal},
                                              {"less", less},
                                              {"less_equal", less_equal},
                                              {"where", where},
                                              {"cast", cast}};
  return list;
}

}  // namespace ferrite::exchange::detail
