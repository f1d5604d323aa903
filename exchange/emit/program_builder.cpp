/// Builds the instructions of a program, and lowers operations that every format writes by the same rules: views,
/// constants, functions of numbers.
#include "ferrite/exchange/emit/program_builder.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/tensor/recorder.h"

namespace ferrite::exchange::detail {

Value ProgramBuilder::constant_of(const Tensor& tensor, const Graph::Node* reader) {
  if (!reader) return constant(tensor);
  Value value;
  inside(*reader, [&] { value = constant(tensor); });
  return value;
}

Value ProgramBuilder::integers(const Integers& values) {
  const NewFrame frame;
  return constant(Tensor::from<std::int64_t>(values, {static_cast<std::int64_t>(values.size())}));
}

Values ProgramBuilder::emit(std::string_view op, const Values& operands, const std::vector<Spec>& results,
                            Attributes attributes, TypeNotation types) {
  Values made;
  for (const Spec& spec : results) made.push_back(fresh(spec));
  append({.op = std::string(op),
          .operands = operands,
          .results = made,
          .attributes = std::move(attributes),
          .types = types,
          .blocks = {},
          .origin = origin_});
  return made;
}

void ProgramBuilder::within(Block& block, const std::function<Values()>& write) {
  Block* const outer = std::exchange(block_, &block);
  block.results = write();
  block_ = outer;
}

Value ProgramBuilder::saturated(const Value& from, Dtype to, Dtype through) {
  const int bits = static_cast<int>(8 * size_of(to));
  const double bound = std::ldexp(1.0, bits - 1);
  const auto most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  const std::int64_t least = -most - 1;
  const Value above = compare("GE", from, like(bound, from));
  const Value below = compare("LT", from, like(-bound, from));
  const Value nan = is_nan(from);
  const Value outside = elementwise("or", {above, elementwise("or", {below, nan})});
  const Value inside = convert(select(outside, like(0, from), from), through);
  const Value capped = select(above, like(most, inside), inside);
  return convert(select(below, like(least, inside), capped), to);
}

namespace {

using Builder = ProgramBuilder;
using ferrite::detail::ArangeAttrs;
using ferrite::detail::FullAttrs;
using ferrite::detail::PermuteAttrs;
using ferrite::detail::SelectAttrs;
using ferrite::detail::SliceAttrs;

Value one(Builder& b, const Value& x) { return b.like(1, x); }
Value zero(Builder& b, const Value& x) { return b.like(0, x); }

// ---- views --------------------------------------------------------------------------------------------------------

Values reshape(Builder& b, const Application& a) { return {b.reshape(a.in[0], a.out[0].shape)}; }
/// Lowers operations that return their operand. `checked` is one of them: formats do not check values, so callers of
/// the exported program have to.
Values same(Builder&, const Application& a) { return {a.in[0]}; }
Values permute(Builder& b, const Application& a) { return {b.transpose(a.in[0], a.as<PermuteAttrs>().order)}; }
Values expand(Builder& b, const Application& a) { return {b.expand(a.in[0], a.out[0].shape)}; }
Values slice(Builder& b, const Application& a) {
  const auto [axis, begin, count, step] = a.as<SliceAttrs>();
  return {b.slice(a.in[0], axis, begin, count, step)};
}
Values select(Builder& b, const Application& a) { return {b.picked(a.in[0], a.axis(), a.as<SelectAttrs>().index)}; }
Values unbind(Builder& b, const Application& a) {
  Values out;
  for (std::size_t i = 0; i < a.out.size(); ++i)
    out.push_back(a.read[i] ? b.picked(a.in[0], a.axis(), static_cast<std::int64_t>(i)) : Value());
  return out;
}
Values split(Builder& b, const Application& a) {
  Values out;
  std::int64_t begin = 0;
  for (const Spec& piece : a.out) {
    const std::int64_t count = piece.shape[a.axis()];
    out.push_back(b.slice(a.in[0], a.axis(), begin, count));
    begin += count;
  }
  return out;
}
Values concat(Builder& b, const Application& a) {
  Values parts;
  for (const Value& x : a.in)
    if (x.shape()[a.axis()] > 0) parts.push_back(x);
  return {b.concatenate(parts, a.axis())};
}
Values stack(Builder& b, const Application& a) {
  Values parts;
  for (const Value& x : a.in) parts.push_back(b.unsqueeze(x, a.axis()));
  return {b.concatenate(parts, a.axis())};
}
/// Lowers a function with a custom gradient, a hook or recomputation to its values, the last operands: an exported
/// program has no gradients.
Values last_operands(Builder&, const Application& a) {
  return {a.in.end() - static_cast<std::ptrdiff_t>(a.out.size()), a.in.end()};
}

// ---- constants ----------------------------------------------------------------------------------------------------

Values full(Builder& b, const Application& a) { return {b.filled(a.as<FullAttrs>().value, a.out[0])}; }

/// Lowers arange to begin + i step, floats in f64 as the operation computes them.
Values arange(Builder& b, const Application& a) {
  const auto [begin, step, count, dtype] = a.as<ArangeAttrs>();
  Value x = b.counted(count);
  if (begin.is_floating() || step.is_floating()) x = b.convert(x, Dtype::f64);
  if (step.real() != 1) x = b.multiply(x, b.like(step, x));
  if (begin.real() != 0) x = b.add(x, b.like(begin, x));
  return {is_float(x.dtype()) ? b.cast(x, dtype) : b.convert(x, dtype)};
}

// ---- elementwise --------------------------------------------------------------------------------------------------

Values square(Builder& b, const Application& a) { return {b.multiply(a.in[0], a.in[0])}; }

/// Lowers exp2 to a power, not e^(x ln 2): the product's rounding error would grow with x.
Values exp2(Builder& b, const Application& a) { return {b.elementwise("power", {b.like(2, a.in[0]), a.in[0]})}; }
Values log2(Builder& b, const Application& a) {
  const Value natural = b.elementwise("log", {a.in[0]});
  return {b.divide(natural, b.like(std::numbers::ln2, natural))};
}
Values log10(Builder& b, const Application& a) {
  const Value natural = b.elementwise("log", {a.in[0]});
  return {b.divide(natural, b.like(std::numbers::ln10, natural))};
}

Values trunc(Builder& b, const Application& a) {
  const Value negative = b.compare("LT", a.in[0], zero(b, a.in[0]));
  const Value up = b.elementwise("ceil", {a.in[0]});
  return {b.select(negative, up, b.elementwise("floor", {a.in[0]}))};
}

/// Lowers hypot to larger sqrt(1 + (smaller / larger)^2) of the absolute values; infinite where one is, even if the
/// other is NaN.
Values hypot(Builder& b, const Application& a) {
  const Value p = b.elementwise("abs", {a.in[0]});
  const Value q = b.elementwise("abs", {a.in[1]});
  const Value large = b.elementwise("maximum", {p, q});
  const Value small = b.elementwise("minimum", {p, q});
  const Value none = b.compare("EQ", large, zero(b, large));
  const Value ratio = b.divide(small, b.select(none, one(b, large), large));
  const Value sum = b.add(one(b, ratio), b.multiply(ratio, ratio));
  const Value scale = b.elementwise("sqrt", {sum});
  const Value infinity = b.like(std::numeric_limits<double>::infinity(), p);
  const Value first = b.compare("EQ", p, infinity);
  const Value infinite = b.elementwise("or", {first, b.compare("EQ", q, infinity)});
  return {b.select(infinite, infinity, b.multiply(large, scale))};
}

/// Lowers sinc to sin(pi x) / (pi x), 1 at 0.
Values sinc(Builder& b, const Application& a) {
  const Value angle = b.multiply(a.in[0], b.like(std::numbers::pi, a.in[0]));
  const Value unit = one(b, angle);
  const Value none = b.compare("EQ", angle, zero(b, angle));
  const Value ratio = b.divide(b.elementwise("sine", {angle}), b.select(none, unit, angle));
  return {b.select(none, unit, ratio)};
}

/// Lowers copysign, including the sign of a zero: 1 / -0 is below 0. The sign of NaN is not read.
Values copysign(Builder& b, const Application& a) {
  const Value size = b.elementwise("abs", {a.in[0]});
  const Value inverse = b.divide(one(b, a.in[1]), a.in[1]);
  const Value below = b.compare("LT", a.in[1], zero(b, a.in[1]));
  const Value negative = b.elementwise("or", {below, b.compare("LT", inverse, zero(b, inverse))});
  return {b.select(negative, b.elementwise("negate", {size}), size)};
}

/// Returns whether a remainder is not 0 and its sign is not the divisor's.
Value crosses(Builder& b, const Value& rest, const Value& divisor) {
  const Value other = b.compare("NE", rest, zero(b, rest));
  const Value left = b.compare("LT", rest, zero(b, rest));
  const Value right = b.compare("LT", divisor, zero(b, divisor));
  return b.elementwise("and", {other, b.elementwise("xor", {left, right})});
}
Values remainder(Builder& b, const Application& a) {
  const Value rest = b.remainder(a.in[0], a.in[1]);
  const Value crossed = crosses(b, rest, a.in[1]);
  return {b.select(crossed, b.add(rest, a.in[1]), rest)};
}
Values fmod(Builder& b, const Application& a) { return {b.remainder(a.in[0], a.in[1])}; }
/// Lowers floor_divide to (a - remainder) / b, which is an integer up to rounding.
Values floor_divide(Builder& b, const Application& a) {
  const Value rest = b.remainder(a.in[0], a.in[1]);
  const Value crossed = crosses(b, rest, a.in[1]);
  const Value exact = b.divide(b.subtract(a.in[0], rest), a.in[1]);
  const Value whole = is_float(exact.dtype()) ? b.elementwise("round_nearest_even", {exact}) : exact;
  const Value below = b.subtract(whole, one(b, whole));
  const Value quotient = b.select(crossed, below, whole);
  if (!is_float(exact.dtype())) return {quotient};
  const Value none = b.compare("EQ", a.in[1], zero(b, a.in[1]));
  return {b.select(none, b.divide(a.in[0], a.in[1]), quotient)};
}

Values equal(Builder& b, const Application& a) { return {b.compare("EQ", a.in[0], a.in[1])}; }
Values less(Builder& b, const Application& a) { return {b.compare("LT", a.in[0], a.in[1])}; }
Values less_equal(Builder& b, const Application& a) { return {b.compare("LE", a.in[0], a.in[1])}; }
Values where(Builder& b, const Application& a) { return {b.select(a.in[0], a.in[1], a.in[2])}; }
Values cast(Builder& b, const Application& a) { return {b.cast(a.in[0], a.out[0].dtype)}; }

}  // namespace

std::span<const NamedLowering<ProgramBuilder>> common_lowerings() {
  static constexpr NamedLowering<ProgramBuilder> list[] = {{"reshape", reshape},
                                                           {"contiguous", same},
                                                           {"permute", permute},
                                                           {"expand", expand},
                                                           {"slice", slice},
                                                           {"select", select},
                                                           {"unbind", unbind},
                                                           {"split", split},
                                                           {"concat", concat},
                                                           {"stack", stack},
                                                           {"detach", same},
                                                           {"checked", same},
                                                           {"custom_gradient", last_operands},
                                                           {"gradient_hook", last_operands},
                                                           {"recompute", last_operands},
                                                           {"full", full},
                                                           {"arange", arange},
                                                           {"square", square},
                                                           {"exp2", exp2},
                                                           {"log2", log2},
                                                           {"log10", log10},
                                                           {"trunc", trunc},
                                                           {"hypot", hypot},
                                                           {"sinc", sinc},
                                                           {"copysign", copysign},
                                                           {"remainder", remainder},
                                                           {"fmod", fmod},
                                                           {"floor_divide", floor_divide},
                                                           {"equal", equal},
                                                           {"less", less},
                                                           {"less_equal", less_equal},
                                                           {"where", where},
                                                           {"cast", cast}};
  return list;
}

}  // namespace ferrite::exchange::detail
