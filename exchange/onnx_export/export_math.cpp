/// How functions of numbers and division with remainder are written.
#include <limits>
#include <numbers>

#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

ExportValue zero(GraphBuilder& b, const ExportValue& x) { return b.scalar_like(0, x); }
ExportValue one(GraphBuilder& b, const ExportValue& x) { return b.scalar_like(1, x); }
ExportValue magnitude(GraphBuilder& b, const ExportValue& x) { return b.elementwise("Abs", {x}); }

ExportValues log10(GraphBuilder& b, const ExportCall& c) {
  const ExportValue natural = b.elementwise("Log", {c.in[0]});
  return {b.divide(natural, b.scalar_like(std::numbers::ln10, natural))};
}

ExportValues trunc(GraphBuilder& b, const ExportCall& c) {
  const ExportValue negative = b.compare("Less", c.in[0], zero(b, c.in[0]));
  const ExportValue up = b.elementwise("Ceil", {c.in[0]});
  return {b.select(negative, up, b.elementwise("Floor", {c.in[0]}))};
}

/// The larger size times sqrt(1 + (smaller / larger)^2); infinite where one is, also beside NaN.
ExportValues hypot(GraphBuilder& b, const ExportCall& c) {
  const ExportValue p = magnitude(b, c.in[0]), q = magnitude(b, c.in[1]);
  const ExportValue large = b.elementwise("Max", {p, q}), small = b.elementwise("Min", {p, q});
  const ExportValue none = b.compare("Equal", large, zero(b, large));
  const ExportValue ratio = b.divide(small, b.select(none, one(b, large), large));
  const ExportValue scale = b.elementwise("Sqrt", {b.add(b.multiply(ratio, ratio), one(b, ratio))});
  const ExportValue infinity = b.scalar_like(std::numeric_limits<double>::infinity(), p);
  const ExportValue first = b.compare("Equal", p, infinity);
  const ExportValue infinite = b.elementwise("Or", {first, b.compare("Equal", q, infinity)});
  return {b.select(infinite, infinity, b.multiply(large, scale))};
}

/// sin(pi x) / (pi x), 1 at 0.
ExportValues sinc(GraphBuilder& b, const ExportCall& c) {
  const ExportValue angle = b.multiply(c.in[0], b.scalar_like(std::numbers::pi, c.in[0]));
  const ExportValue none = b.compare("Equal", angle, zero(b, angle));
  const ExportValue ratio = b.divide(b.elementwise("Sin", {angle}), b.select(none, one(b, angle), angle));
  return {b.select(none, one(b, angle), ratio)};
}

/// Whether the sign is there, that of a zero too: 1 / -0 is below 0. That of NaN is not read.
ExportValue has_sign(GraphBuilder& b, const ExportValue& x) {
  const ExportValue below = b.compare("Less", x, zero(b, x));
  return b.elementwise("Or", {below, b.compare("Less", b.elementwise("Reciprocal", {x}), zero(b, x))});
}

ExportValues copysign(GraphBuilder& b, const ExportCall& c) {
  const ExportValue size = magnitude(b, c.in[0]);
  return {b.select(has_sign(b, c.in[1]), b.elementwise("Neg", {size}), size)};
}

/// The angle of the smaller coordinate over the larger, then by octants.
ExportValues atan2(GraphBuilder& b, const ExportCall& c) {
  const ExportValue &y = c.in[0], &x = c.in[1];
  const ExportValue p = magnitude(b, y), q = magnitude(b, x);
  const ExportValue large = b.elementwise("Max", {p, q}), small = b.elementwise("Min", {p, q});
  const ExportValue none = b.compare("Equal", large, zero(b, large));
  const ExportValue same = b.compare("Equal", small, large);  // both infinite too
  const ExportValue quotient = b.divide(small, b.select(none, one(b, large), large));
  const ExportValue ratio = b.select(none, zero(b, p), b.select(same, one(b, p), quotient));
  const ExportValue first = b.elementwise("Atan", {ratio});
  const ExportValue steep = b.compare("Greater", p, q);
  const ExportValue in_quarter = b.select(steep, b.subtract(b.scalar_like(std::numbers::pi / 2, first), first), first);
  const ExportValue left = has_sign(b, x);
  const ExportValue in_half =
      b.select(left, b.subtract(b.scalar_like(std::numbers::pi, first), in_quarter), in_quarter);
  return {b.select(has_sign(b, y), b.elementwise("Neg", {in_half}), in_half)};
}

/// a - b trunc(a / b), of a's sign.
ExportValue rest_of(GraphBuilder& b, const ExportCall& c) {
  return b.node("Mod", {c.in[0], c.in[1]}, c.out[0], {{"fmod", std::int64_t{1}}});
}
ExportValues fmod(GraphBuilder& b, const ExportCall& c) { return {rest_of(b, c)}; }

/// Whether a rest is not 0 and has not the divisor's sign.
ExportValue crosses(GraphBuilder& b, const ExportValue& rest, const ExportValue& divisor) {
  const ExportValue other = b.negation(b.compare("Equal", rest, zero(b, rest)));
  const ExportValue left = b.compare("Less", rest, zero(b, rest));
  const ExportValue right = b.compare("Less", divisor, zero(b, divisor));
  return b.elementwise("And", {other, b.elementwise("Xor", {left, right})});
}
ExportValues remainder(GraphBuilder& b, const ExportCall& c) {
  const ExportValue rest = rest_of(b, c);
  return {b.select(crosses(b, rest, c.in[1]), b.add(rest, c.in[1]), rest)};
}
/// (a - remainder) / b, which is whole but for a rounding.
ExportValues floor_divide(GraphBuilder& b, const ExportCall& c) {
  const ExportValue rest = rest_of(b, c);
  const ExportValue crossed = crosses(b, rest, c.in[1]);
  const ExportValue exact = b.divide(b.subtract(c.in[0], rest), c.in[1]);
  const bool floats = is_float(exact.dtype());
  const ExportValue whole = floats ? b.elementwise("Round", {exact}) : exact;
  const ExportValue quotient = b.select(crossed, b.subtract(whole, one(b, whole)), whole);
  if (!floats) return {quotient};
  const ExportValue none = b.compare("Equal", c.in[1], zero(b, c.in[1]));
  return {b.select(none, b.divide(c.in[0], c.in[1]), quotient)};
}

}  // namespace

ExportFamily export_math() {
  static constexpr NamedExportLowering list[] = {
      {"log10", log10},         {"trunc", trunc}, {"hypot", hypot},
      {"sinc", sinc},           {"atan2", atan2}, {"copysign", copysign},
      {"remainder", remainder}, {"fmod", fmod},   {"floor_divide", floor_divide}};
  return list;
}

}  // namespace ferrite::onnx::detail
