/// Lowers elementwise operations: arithmetic, comparisons, logic, functions, activations, casts.
#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/exchange/onnx/operations/unsigned64.h"
#include "ferrite/tensor/activations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

// ---- one operand -----------------------------------------------------------------------------------------

/// Lowers a function whose result has the operand's type.
template <Tensor (*F)(const Tensor&)>
Values of_one(const Call& call) {
  return {narrowed(F(call.tensor(0)), call.type(0))};
}
/// Lowers a function whose result is bool.
template <Tensor (*F)(const Tensor&)>
Values tested(const Call& call) {
  return {{F(call.tensor(0)), ElementType::boolean}};
}

Tensor not_(const Tensor& x) { return !x; }

Values abs_(const Call& c) { return c.type(0) == ElementType::u64 ? Values{c.value(0)} : of_one<abs>(c); }
Values sign_(const Call& c) {
  if (c.type(0) != ElementType::u64) return of_one<sign>(c);
  return {{cast(ne(c.tensor(0), 0), Dtype::i64), ElementType::u64}};
}

Values isinf_(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool negative = call.integer("detect_negative", 1) != 0, positive = call.integer("detect_positive", 1) != 0;
  Tensor y = isinf(x);
  if (!negative) y = y && x > 0;
  if (!positive) y = y && x < 0;
  return {{y, ElementType::boolean}};
}

/// Lowers a function with constants.
template <class F>
Values activated(const Call& call, F f) {
  return {narrowed(f(call.tensor(0)), call.type(0))};
}

Values leaky_relu_(const Call& c) {
  const double a = c.number("alpha", 0.01);
  return activated(c, [&](const Tensor& x) { return leaky_relu(x, a); });
}
Values elu_(const Call& c) {
  const double a = c.number("alpha", 1);
  return activated(c, [&](const Tensor& x) { return elu(x, a); });
}
Values celu_(const Call& c) {
  const double a = c.number("alpha", 1);
  return activated(c, [&](const Tensor& x) { return celu(x, a); });
}
Values selu_(const Call& c) {
  const double alpha = c.number("alpha", 1.67326319217681884765625),
               gamma = c.number("gamma", 1.05070102214813232421875);
  return activated(c, [&](const Tensor& x) { return elu(x, alpha) * gamma; });
}
Values hard_sigmoid(const Call& c) {
  const double alpha = c.number("alpha", 0.2), beta = c.number("beta", 0.5);
  return activated(c, [&](const Tensor& x) { return clamp(x * alpha + beta, 0.0, 1.0); });
}
Values hard_swish(const Call& c) {
  return activated(c, [&](const Tensor& x) { return x * clamp(x * (1.0 / 6) + 0.5, 0.0, 1.0); });
}
Values thresholded_relu(const Call& c) {
  const double a = c.number("alpha", 1);
  return activated(c, [&](const Tensor& x) { return where(x > a, x, zeros_like(x)); });
}
Values shrink(const Call& c) {
  const double lambda = c.number("lambd", 0.5), bias = c.number("bias", 0);
  return activated(
      c, [&](const Tensor& x) { return where(x < -lambda, x + bias, where(x > lambda, x - bias, zeros_like(x))); });
}
Values gelu_(const Call& c) {
  const std::string form = c.text("approximate", "none");
  if (form != "none" && form != "tanh") c.refuse("approximate is none or tanh, got '" + form + "'");
  return activated(c, [&](const Tensor& x) { return gelu(x, form == "tanh" ? GeluForm::tanh : GeluForm::exact); });
}
Values swish(const Call& c) {
  const double a = c.number("alpha", 1);
  return activated(c, [&](const Tensor& x) { return x * sigmoid(x * a); });
}
Values prelu_(const Call& c) {
  const Tensor& x = c.tensor(0);
  Tensor slope = c.tensor(1);
  if (c.version() < 7 && slope.numel() > 1) {  // one for each channel
    Shape channels = Shape::filled(x.rank(), 1);
    channels[1] = slope.numel();
    slope = reshape(slope, channels);
  }
  return {narrowed(where(x < 0, x * slope, x), c.type(0))};
}

// ---- two operands ----------------------------------------------------------------------------------------

void check_broadcast(const Call& call) {
  if (call.version() < 7) call.refuse("opset " + std::to_string(call.version()) + " is not supported, 7 is the oldest");
}

template <class F>
Values arithmetic(const Call& call, F f) {
  check_broadcast(call);
  if (call.type(0) != call.type(1)) call.refuse("its operands are of different types");
  return {narrowed(f(call.tensor(0), call.tensor(1)), call.type(0))};
}

Values mod(const Call& c) {
  const bool truncated = c.integer("fmod", 0) != 0;
  if (c.type(0) == ElementType::u64)
    return arithmetic(c, [](const Tensor& a, const Tensor& b) { return a - unsigned_quotient(a, b) * b; });
  return arithmetic(c, [&](const Tensor& a, const Tensor& b) { return truncated ? fmod(a, b) : remainder(a, b); });
}

/// Lowers Pow, whose exponent may have another type. An exponent of 2 is common and becomes a product, rounded once.
Values pow_(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor y = second_operand(c);
  if (is_float(x.dtype()) && c.known(1) && y.numel() == 1 && y.rank() <= x.rank() && c.known_float(1) == 2)
    return {narrowed(square(x), c.type(0))};
  if (is_float(x.dtype())) return {narrowed(pow(x, cast(y, x.dtype())), c.type(0))};
  return {narrowed(cast(pow(cast(x, Dtype::f64), cast(y, Dtype::f64)), x.dtype()), c.type(0))};
}

template <class F>
Values compared(const Call& c, F f) {
  check_broadcast(c);
  if (c.type(0) != c.type(1)) c.refuse("its operands are of different types");
  return {{f(ordered(c.tensor(0), c.type(0)), ordered(c.tensor(1), c.type(1))), ElementType::boolean}};
}
Values equal_(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return eq(a, b); });
}
Values greater(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a > b; });
}
Values greater_equal(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a >= b; });
}
Values less(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a < b; });
}
Values less_equal(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a <= b; });
}
Values and_(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a && b; });
}
Values or_(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return a || b; });
}
Values xor_(const Call& c) {
  return compared(c, [](const Tensor& a, const Tensor& b) { return logical_xor(a, b); });
}
Values bitwise_and_(const Call& c) {
  return arithmetic(c, [](const Tensor& a, const Tensor& b) { return bitwise_and(a, b); });
}
Values bitwise_or_(const Call& c) {
  return arithmetic(c, [](const Tensor& a, const Tensor& b) { return bitwise_or(a, b); });
}
Values bitwise_xor_(const Call& c) {
  return arithmetic(c, [](const Tensor& a, const Tensor& b) { return bitwise_xor(a, b); });
}

// ---- several operands ------------------------------------------------------------------------------------

template <class F>
Values folded(const Call& c, F f) {
  Tensor y = c.tensor(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    if (c.type(i) != c.type(0)) c.refuse("its operands are of different types");
    y = f(y, c.tensor(i));
  }
  return {narrowed(y, c.type(0))};
}
Tensor larger(const Tensor& a, const Tensor& b, ElementType type) {
  return ordered(maximum(ordered(a, type), ordered(b, type)), type);
}
Tensor smaller(const Tensor& a, const Tensor& b, ElementType type) {
  return ordered(minimum(ordered(a, type), ordered(b, type)), type);
}
Values max_(const Call& c) {
  return folded(c, [&](const Tensor& a, const Tensor& b) { return larger(a, b, c.type(0)); });
}
Values min_(const Call& c) {
  return folded(c, [&](const Tensor& a, const Tensor& b) { return smaller(a, b, c.type(0)); });
}
Values sum_(const Call& c) {
  return folded(c, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Values mean_(const Call& c) {
  Values y = sum_(c);
  return {narrowed(y[0].tensor / static_cast<double>(c.inputs()), c.type(0))};
}

Values where_(const Call& c) {
  if (c.type(1) != c.type(2)) c.refuse("its operands are of different types");
  return {{where(c.tensor(0), c.tensor(1), c.tensor(2)), c.type(1)}};
}

/// Lowers Clip, whose bounds are attributes before opset 11.
Values clip(const Call& c) {
  Tensor x = c.tensor(0);
  if (c.version() < 11) {
    const double low = c.number("min", std::numeric_limits<float>::lowest()),
                 high = c.number("max", std::numeric_limits<float>::max());
    return {narrowed(minimum(maximum(x, low), high), c.type(0))};
  }
  if (c.has(1)) x = larger(x, reshape(c.tensor(1), {}), c.type(0));
  if (c.has(2)) x = smaller(x, reshape(c.tensor(2), {}), c.type(0));
  return {{x, c.type(0)}};
}

/// Casts to a type. Floats are rounded toward zero to integers; ONNX does not define values outside of the type.
Values cast_to(const Call& c, ElementType to) {
  c.without_effect("saturate");    // only for floats of 8 bits
  c.without_effect("round_mode");  // only for floats of 8 bits
  const Tensor& x = c.tensor(0);
  const Dtype dtype = dtype_for(to, "onnx: Cast");
  if (c.type(0) == to) return {{x, to}};
  if (c.type(0) == ElementType::u64 && is_floating(to)) {  // the upper half is held as negative numbers
    const Tensor wide = cast(x, Dtype::f64);
    return {narrowed(cast(where(x < 0, wide + 18446744073709551616.0, wide), dtype), to)};
  }
  if (to == ElementType::f16 || to == ElementType::bf16)  // rounded once, also from f64
    return {{cast(cast(x, to == ElementType::f16 ? Dtype::f16 : Dtype::bf16), dtype), to}};
  const bool truncates = is_floating(c.type(0)) && is_integral(to);
  return {narrowed(cast(truncates ? cast(x, Dtype::i64) : x, dtype), to)};
}
Values cast_(const Call& c) { return cast_to(c, static_cast<ElementType>(c.integer("to"))); }
Values cast_like(const Call& c) { return cast_to(c, c.type(1)); }

constexpr std::array kRows = std::to_array<Operation>({
    {.name = "Abs", .lower = abs_},
    {.name = "Neg", .lower = of_one<neg>},
    {.name = "Sign", .lower = sign_},
    {.name = "Sqrt", .lower = of_one<sqrt>},
    {.name = "Reciprocal", .lower = of_one<reciprocal>},
    {.name = "Exp", .lower = of_one<exp>},
    {.name = "Log", .lower = of_one<log>},
    {.name = "Sin", .lower = of_one<sin>},
    {.name = "Cos", .lower = of_one<cos>},
    {.name = "Tan", .lower = of_one<tan>},
    {.name = "Asin", .lower = of_one<asin>},
    {.name = "Acos", .lower = of_one<acos>},
    {.name = "Atan", .lower = of_one<atan>},
    {.name = "Sinh", .lower = of_one<sinh>},
    {.name = "Cosh", .lower = of_one<cosh>},
    {.name = "Asinh", .lower = of_one<asinh>},
    {.name = "Acosh", .lower = of_one<acosh>},
    {.name = "Atanh", .lower = of_one<atanh>},
    {.name = "Erf", .lower = of_one<erf>},
    {.name = "Softplus", .lower = of_one<softplus>},
    {.name = "Softsign", .lower = of_one<softsign>},
    {.name = "Floor", .lower = of_one<floor>},
    {.name = "Ceil", .lower = of_one<ceil>},
    {.name = "Round", .lower = of_one<round>},
    {.name = "Mish", .lower = of_one<mish>},
    {.name = "BitwiseNot", .lower = of_one<bitwise_not>},
    {.name = "Not", .lower = tested<not_>},
    {.name = "IsNaN", .lower = tested<isnan>},
    {.name = "IsInf", .lower = isinf_},
    {.name = "LeakyRelu", .lower = leaky_relu_},
    {.name = "Elu", .lower = elu_},
    {.name = "Celu", .lower = celu_},
    {.name = "Selu", .lower = selu_},
    {.name = "HardSigmoid", .lower = hard_sigmoid},
    {.name = "HardSwish", .lower = hard_swish},
    {.name = "ThresholdedRelu", .lower = thresholded_relu},
    {.name = "Shrink", .lower = shrink},
    {.name = "Gelu", .lower = gelu_},
    {.name = "Swish", .lower = swish},
    {.name = "PRelu", .lower = prelu_},
    {.name = "Mod", .lower = mod},
    {.name = "Pow", .lower = pow_},
    {.name = "Equal", .lower = equal_},
    {.name = "Greater", .lower = greater},
    {.name = "GreaterOrEqual", .lower = greater_equal},
    {.name = "Less", .lower = less},
    {.name = "LessOrEqual", .lower = less_equal},
    {.name = "And", .lower = and_},
    {.name = "Or", .lower = or_},
    {.name = "Xor", .lower = xor_},
    {.name = "BitwiseAnd", .lower = bitwise_and_},
    {.name = "BitwiseOr", .lower = bitwise_or_},
    {.name = "BitwiseXor", .lower = bitwise_xor_},
    {.name = "Max", .lower = max_},
    {.name = "Min", .lower = min_},
    {.name = "Sum", .lower = sum_},
    {.name = "Mean", .lower = mean_},
    {.name = "Where", .lower = where_},
    {.name = "Clip", .lower = clip},
    {.name = "Cast", .lower = cast_},
    {.name = "CastLike", .lower = cast_like},
});

}  // namespace

Tensor second_operand(const Call& call) {
  const Tensor &a = call.tensor(0), &b = call.tensor(1);
  if (call.version() >= 7) return b;
  const bool broadcasts = call.integer("broadcast", 0) != 0;
  const std::int64_t given = call.integer("axis", a.rank() - b.rank());
  if (b.shape() == a.shape()) return b;
  if (broadcasts && b.numel() == 1) return reshape(b, {});
  const int axis = axis_of(call, given, a.rank());
  if (!broadcasts || axis + b.rank() > a.rank())
    call.refuse("its operands differ in shape: " + a.shape().str() + " and " + b.shape().str());
  Shape shape = Shape::filled(a.rank(), 1);
  for (int i = 0; i < b.rank(); ++i) shape[axis + i] = b.size(i);
  return reshape(b, shape);
}

Operations elementwise_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
