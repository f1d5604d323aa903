/// How pointwise operations are written that ONNX lacks, names otherwise or has for some types only.
#include <cmath>
#include <numbers>

#include "ferrite/exchange/onnx_export/export_lowering.h"

namespace ferrite::onnx::detail {
namespace {

bool of_f32(const ExportCall& c) { return c.out[0].dtype == Dtype::f32; }

ExportValues maximum(GraphBuilder& b, const ExportCall& c) {
  return {b.elementwise(c.out[0].dtype == Dtype::boolean ? "Or" : "Max", c.in)};
}
ExportValues minimum(GraphBuilder& b, const ExportCall& c) {
  return {b.elementwise(c.out[0].dtype == Dtype::boolean ? "And" : "Min", c.in)};
}

/// Clip takes bounds of one element only.
ExportValues clamp(GraphBuilder& b, const ExportCall& c) {
  return {b.elementwise("Min", {b.elementwise("Max", {c.in[0], c.in[1]}), c.in[2]})};
}

ExportValues square(GraphBuilder& b, const ExportCall& c) { return {b.multiply(c.in[0], c.in[0])}; }

ExportValues reciprocal_root(GraphBuilder& b, const ExportCall& c) {
  return {b.elementwise("Reciprocal", {b.elementwise("Sqrt", {c.in[0]})})};
}

ExportValues exp2(GraphBuilder& b, const ExportCall& c) {
  return {b.elementwise("Pow", {b.scalar_like(2, c.in[0]), c.in[0]})};
}

ExportValues log2(GraphBuilder& b, const ExportCall& c) {
  const ExportValue natural = b.elementwise("Log", {c.in[0]});
  return {b.divide(natural, b.scalar_like(std::numbers::ln2, natural))};
}

ExportValue magnitude(GraphBuilder& b, const ExportValue& x) { return b.elementwise("Abs", {x}); }

/// 2 t / (1 - t) with t = tanh(x / 2) near 0, where e^x - 1 cancels.
ExportValues expm1(GraphBuilder& b, const ExportCall& c) {
  const ExportValue& x = c.in[0];
  const ExportValue one = b.scalar_like(1, x), half = b.scalar_like(0.5, x);
  const ExportValue near = b.compare("Less", magnitude(b, x), half);
  const ExportValue small = b.elementwise("Tanh", {b.multiply(b.select(near, x, b.scalar_like(0, x)), half)});
  const ExportValue above = b.add(small, small);
  const ExportValue exact = b.divide(above, b.subtract(one, small));
  return {b.select(near, exact, b.subtract(b.elementwise("Exp", {x}), one))};
}

/// ln(u) x / (u - 1) with the rounded u = 1 + x below 1, where ln(1 + x) loses what rounding took from x.
ExportValue log_plus_one(GraphBuilder& b, const ExportValue& x) {
  const ExportValue one = b.scalar_like(1, x);
  const ExportValue u = b.add(one, x);
  const ExportValue natural = b.elementwise("Log", {u});
  const ExportValue rest = b.subtract(u, one);
  const ExportValue none = b.compare("Equal", rest, b.scalar_like(0, x));
  const ExportValue corrected = b.multiply(natural, b.divide(x, b.select(none, one, rest)));
  const ExportValue near = b.select(none, x, corrected);
  return b.select(b.compare("Greater", x, one), natural, near);
}
ExportValues log1p(GraphBuilder& b, const ExportCall& c) { return {log_plus_one(b, c.in[0])}; }

ExportValues relu(GraphBuilder& b, const ExportCall& c) {
  if (c.out[0].dtype == Dtype::i64) return {b.elementwise("Max", {c.in[0], b.scalar_like(0, c.in[0])})};
  return {b.elementwise("Relu", {c.in[0]})};
}

/// Softplus of f64 is one that ONNX Runtime does not have.
ExportValues softplus(GraphBuilder& b, const ExportCall& c) {
  const ExportValue& x = c.in[0];
  if (of_f32(c)) return {b.elementwise("Softplus", {x})};
  const ExportValue tail = b.elementwise("Exp", {b.elementwise("Neg", {magnitude(b, x)})});
  const ExportValue positive = b.elementwise("Max", {x, b.scalar_like(0, x)});
  return {b.add(positive, log_plus_one(b, tail))};
}

/// x / 2 (1 + erf(x / sqrt(2))); below -40, where it is 0, x may be infinite.
ExportValues gelu(GraphBuilder& b, const ExportCall& c) {
  const ExportValue x = b.elementwise("Max", {c.in[0], b.scalar_like(-40, c.in[0])});
  const ExportValue inner = b.elementwise("Erf", {b.multiply(x, b.scalar_like(1 / std::numbers::sqrt2, x))});
  const ExportValue twice = b.add(inner, b.scalar_like(1, x));
  return {b.multiply(b.multiply(x, twice), b.scalar_like(0.5, x))};
}
/// g (Phi(x) + x phi(x)); beyond 40, where phi is 0, x may be infinite.
ExportValues gelu_grad(GraphBuilder& b, const ExportCall& c) {
  const ExportValue &g = c.in[0], &x = c.in[1];
  const ExportValue inner = b.elementwise("Erf", {b.multiply(x, b.scalar_like(1 / std::numbers::sqrt2, x))});
  const ExportValue phi = b.multiply(b.add(inner, b.scalar_like(1, x)), b.scalar_like(0.5, x));
  const ExportValue below = b.elementwise("Min", {x, b.scalar_like(40, x)});
  const ExportValue inside = b.elementwise("Max", {below, b.scalar_like(-40, x)});
  const ExportValue power = b.elementwise("Exp", {b.multiply(b.multiply(inside, inside), b.scalar_like(-0.5, x))});
  const double root = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const ExportValue density = b.multiply(power, b.scalar_like(root, x));
  return {b.multiply(g, b.add(phi, b.multiply(inside, density)))};
}
ExportValues erfc(GraphBuilder& b, const ExportCall& c) {
  return {b.subtract(b.scalar_like(1, c.in[0]), b.elementwise("Erf", {c.in[0]}))};
}

/// What ONNX has with a slope among its attributes; with other slopes, or in f64, the composition.
ExportValues sloped(GraphBuilder& b, const ExportCall& c) {
  const Scalar* slope = c.literal(1);
  if (!slope || !of_f32(c)) return {};
  return {b.node(std::string(c.op.onnx), {c.in[0]}, c.out[0], {{"alpha", slope->as<float>()}})};
}
ExportValues unary_of_f32(GraphBuilder& b, const ExportCall& c) {
  if (!of_f32(c)) return {};
  return {b.node(std::string(c.op.onnx), {c.in[0]}, c.out[0])};
}
ExportValues hardsigmoid(GraphBuilder& b, const ExportCall& c) {
  if (!of_f32(c)) return {};
  return {b.node("HardSigmoid", {c.in[0]}, c.out[0], {{"alpha", 1.0F / 6}, {"beta", 0.5F}})};
}

bool on_bool(const ExportCall& c) { return c.in[0].dtype() == Dtype::boolean; }

/// Comparisons of bool are ones that ONNX Runtime does not have.
ExportValues equal(GraphBuilder& b, const ExportCall& c) {
  if (on_bool(c)) return {b.negation(b.elementwise("Xor", c.in))};
  return {b.compare("Equal", c.in[0], c.in[1])};
}
ExportValues less(GraphBuilder& b, const ExportCall& c) {
  if (on_bool(c)) return {b.elementwise("And", {b.negation(c.in[0]), c.in[1]})};
  return {b.compare("Less", c.in[0], c.in[1])};
}
ExportValues less_equal(GraphBuilder& b, const ExportCall& c) {
  if (on_bool(c)) return {b.elementwise("Or", {b.negation(c.in[0]), c.in[1]})};
  return {b.compare("LessOrEqual", c.in[0], c.in[1])};
}
ExportValues where(GraphBuilder& b, const ExportCall& c) { return {b.select(c.in[0], c.in[1], c.in[2])}; }

/// Bits of bool; those of integers come with opset 18.
ExportValues bits(GraphBuilder& b, const ExportCall& c) {
  if (!on_bool(c)) return {};
  std::string op(c.op.name.substr(std::string_view("bitwise_").size()));
  op[0] = static_cast<char>(op[0] - 'a' + 'A');
  return {b.elementwise(op, c.in)};
}

ExportValue to_integer(GraphBuilder& b, const ExportValue& from, Dtype to) {
  const ExportValue x = is_storage_only(from.dtype()) ? b.convert(from, Dtype::f32) : from;  // it holds the bounds
  const Dtype wide = is_storage_only(to) ? Dtype::i32 : to;
  const int bits = static_cast<int>(8 * size_of(to));
  const double bound = std::ldexp(1.0, bits - 1);
  const auto most = static_cast<std::int64_t>(~std::uint64_t{0} >> (65 - bits));
  const std::int64_t least = -most - 1;
  const ExportValue above = b.compare("GreaterOrEqual", x, b.scalar_like(bound, x));
  const ExportValue below = b.compare("Less", x, b.scalar_like(-bound, x));
  const ExportValue nan = b.node("IsNaN", {x}, {x.shape(), Dtype::boolean});
  const ExportValue outside = b.elementwise("Or", {above, b.elementwise("Or", {below, nan})});
  const ExportValue inside = b.convert(b.select(outside, b.scalar_like(0, x), x), wide);
  const ExportValue capped = b.select(above, b.scalar(most, wide), inside);
  return b.convert(b.select(below, b.scalar(least, wide), capped), to);
}

ExportValues cast(GraphBuilder& b, const ExportCall& c) { return {cast_value(b, c.in[0], c.out[0].dtype)}; }

}  // namespace

ExportValue cast_value(GraphBuilder& b, const ExportValue& x, Dtype to) {
  const bool saturates = kind_of(to) == DtypeKind::integer && kind_of(x.dtype()) == DtypeKind::floating;
  return saturates ? to_integer(b, x, to) : b.convert(x, to);
}

ExportFamily export_pointwise() {
  static constexpr NamedExportLowering list[] = {{"maximum", maximum},
                                                 {"minimum", minimum},
                                                 {"clamp", clamp},
                                                 {"square", square},
                                                 {"rsqrt", reciprocal_root},
                                                 {"exp2", exp2},
                                                 {"log2", log2},
                                                 {"expm1", expm1},
                                                 {"log1p", log1p},
                                                 {"relu", relu},
                                                 {"softplus", softplus},
                                                 {"gelu", gelu},
                                                 {"gelu_grad", gelu_grad},
                                                 {"erfc", erfc},
                                                 {"leaky_relu", sloped},
                                                 {"elu", sloped},
                                                 {"celu", sloped},
                                                 {"softsign", unary_of_f32},
                                                 {"selu", unary_of_f32},
                                                 {"hardswish", unary_of_f32},
                                                 {"hardsigmoid", hardsigmoid},
                                                 {"equal", equal},
                                                 {"less", less},
                                                 {"less_equal", less_equal},
                                                 {"where", where},
                                                 {"bitwise_and", bits},
                                                 {"bitwise_or", bits},
                                                 {"bitwise_xor", bits},
                                                 {"cast", cast}};
  return list;
}

}  // namespace ferrite::onnx::detail
