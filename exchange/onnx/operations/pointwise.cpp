/// Operations that compute every element by itself: arithmetic, functions, comparisons, logic, bits, Cast, Where.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ferrite/exchange/onnx/operations.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// Refuses operands of different types.
void same_types(const Call& call, std::size_t first = 0) {
  for (std::size_t i = first + 1; i < call.inputs(); ++i)
    if (call.has(i) && call.type(i) != call.type(first))
      call.refuse("its operands are of different types: " + std::string(name_of(call.type(first))) + " and " +
                  std::string(name_of(call.type(i))));
}

/// A function of one tensor; f16 and bf16 are rounded after it.
template <Tensor (*f)(const Tensor&)>
Values one(const Call& call) {
  return {narrowed(f(call.tensor(0)), call.type(0))};
}

/// Negation and absolute values wrap around in narrow integers.
Values absolute(const Call& call) {
  return {is_unsigned(call.type(0)) ? call.value(0) : narrowed(abs(call.tensor(0)), call.type(0))};
}

Values sign_of(const Call& call) { return {{sign(call.tensor(0)), call.type(0)}}; }

/// Whole numbers stay: floor, ceil and round of floats only, as the standard has them.
Values power(const Call& call) {
  const ElementType type = call.type(0);
  const Tensor& x = call.tensor(0);
  const Tensor& y = call.tensor(1);
  const Dtype wide = is_floating(type) && !is_floating(call.type(1)) ? x.dtype()
                     : is_floating(type)                            ? x.dtype()
                                                                    : Dtype::f64;
  const Tensor base = cast(x, wide);
  const bool square_root = is_floating(type) && call.known(1) && y.numel() == 1 && call.known_floats(1)[0] == 2;
  if (square_root && y.rank() <= x.rank()) return {narrowed(square(base), type)};
  return {narrowed(cast(pow(base, cast(y, wide)), x.dtype()), type)};
}

Values modulo(const Call& call) {
  same_types(call);
  const bool of_dividend = call.integer("fmod", 0) != 0;
  if (!of_dividend && is_floating(call.type(0))) call.refuse("fmod must be 1 for floats");
  const Tensor& a = call.tensor(0);
  const Tensor& b = call.tensor(1);
  return {narrowed(of_dividend ? fmod(a, b) : remainder(a, b), call.type(0))};
}

/// Max, Min, Sum, Mean of any number of tensors.
Values of_many(const Call& call) {
  same_types(call);
  if (call.inputs() == 0) call.refuse("it has no inputs");
  const std::string_view name = call.name();
  Tensor y = call.tensor(0);
  for (std::size_t i = 1; i < call.inputs(); ++i) {
    const Tensor& x = call.tensor(i);
    y = name == "Max" ? maximum(y, x) : name == "Min" ? minimum(y, x) : y + x;
  }
  if (name == "Mean" && call.inputs() > 1) y = y / static_cast<double>(call.inputs());
  return {narrowed(y, call.type(0))};
}

/// min and max as attributes before version 11, as inputs since.
Values clip(const Call& call) {
  const Value& x = call.value(0);
  Tensor y = call.tensor(0);
  if (call.version() < 11) {
    const double low = call.number("min", std::numeric_limits<float>::lowest());
    const double high = call.number("max", std::numeric_limits<float>::max());
    return {{minimum(maximum(y, low), high), x.type}};
  }
  same_types(call);
  const bool low = call.has(1);
  const bool high = call.has(2);
  for (std::size_t i = 1; i < 3; ++i)
    if (call.has(i) && call.tensor(i).numel() != 1) call.refuse("its bounds must be scalars");
  if (low) y = maximum(y, reshape(call.tensor(1), {}));
  if (high) y = minimum(y, reshape(call.tensor(2), {}));
  return {{y, x.type}};
}

template <Tensor (*f)(const Operand&, const Operand&)>
Values compare(const Call& call) {
  same_types(call);
  Tensor a = call.tensor(0);
  Tensor b = call.tensor(1);
  if (a.dtype() == Dtype::boolean) {
    a = cast(a, Dtype::i32);
    b = cast(b, Dtype::i32);
  }
  return {{f(a, b), ElementType::boolean}};
}

Values logic(const Call& call) {
  const std::string_view name = call.name();
  const Tensor& a = call.tensor(0);
  if (a.dtype() != Dtype::boolean) call.refuse("its operands must be bool");
  if (name == "Not") return {{!a, ElementType::boolean}};
  const Tensor& b = call.tensor(1);
  if (b.dtype() != Dtype::boolean) call.refuse("its operands must be bool");
  return {{name == "And" ? a && b : name == "Or" ? a || b : logical_xor(a, b), ElementType::boolean}};
}

template <Tensor (*f)(const Operand&, const Operand&)>
Values bits(const Call& call) {
  same_types(call);
  return {narrowed(f(call.tensor(0), call.tensor(1)), call.type(0))};
}

Values bit_shift(const Call& call) {
  same_types(call);
  const std::string direction = call.text("direction");
  if (call.type(0) == ElementType::u64 && direction == "RIGHT") {
    // The bits of the number as i64: those that the sign brings in are cleared.
    const Tensor& a = call.tensor(0);
    const Tensor& n = call.tensor(1);
    const Tensor rest = bitwise_and(bitwise_right_shift(a, 1), std::numeric_limits<std::int64_t>::max());
    return {{where(eq(n, 0), a, bitwise_right_shift(rest, n - 1)), call.type(0)}};
  }
  if (direction == "LEFT") return bits<bitwise_left_shift>(call);
  if (direction == "RIGHT") return bits<bitwise_right_shift>(call);
  call.refuse("direction \"" + direction + "\" is neither LEFT nor RIGHT");
}

Values bit_not(const Call& call) { return {narrowed(bitwise_not(call.tensor(0)), call.type(0))}; }

Values choose(const Call& call) {
  same_types(call, 1);
  return {{where(call.tensor(0), call.tensor(1), call.tensor(2)), call.type(1)}};
}

Values is_infinite(const Call& call) {
  const Tensor& x = call.tensor(0);
  const bool negative = call.integer("detect_negative", 1) != 0;
  const bool positive = call.integer("detect_positive", 1) != 0;
  Tensor y = isinf(x);
  if (!negative) y = y && gt(x, 0);
  if (!positive) y = y && lt(x, 0);
  return {{y, ElementType::boolean}};
}

Values is_not_a_number(const Call& call) { return {{isnan(call.tensor(0)), ElementType::boolean}}; }

/// A tensor as elements of another type.
Value converted(const Call& call, const Value& x, ElementType to) {
  const Dtype dtype = dtype_for(to, "onnx: " + std::string(call.name()));
  if (x.type == to) return x;
  if (is_floating(x.type) && is_integral(to)) return narrowed(cast(x.tensor, Dtype::i64), to);
  if (x.type == ElementType::u64 && is_floating(to)) {
    // the upper half of the numbers is held as negative ones
    const Tensor wide = cast(x.tensor, Dtype::f64);
    return narrowed(cast(where(lt(x.tensor, 0), wide + 18446744073709551616.0, wide), dtype), to);
  }
  if (to == ElementType::f16 || to == ElementType::bf16) {
    // rounded once, also from f64
    const Dtype narrow = to == ElementType::f16 ? Dtype::f16 : Dtype::bf16;
    return {cast(cast(x.tensor, narrow), dtype), to};
  }
  if (is_integral(to) && is_integral(x.type)) return narrowed(cast(x.tensor, Dtype::i64), to).tensor.dtype() == dtype
                                                         ? narrowed(cast(x.tensor, Dtype::i64), to)
                                                         : Value{cast(x.tensor, dtype), to};
  return {cast(x.tensor, dtype), to};
}

Values cast_to(const Call& call) {
  // Of floats of 8 bits and less, which dtype_for refuses, alone.
  call.without_effect("saturate");
  call.without_effect("round_mode");
  return {converted(call, call.value(0), static_cast<ElementType>(call.integer("to")))};
}

Values cast_like(const Call& call) {
  call.without_effect("saturate");
  call.without_effect("round_mode");
  return {converted(call, call.value(0), call.type(1))};
}

constexpr Operation kOperations[] = {
    {.name = "Abs", .lower = absolute, .since = 6},
    {.name = "Neg", .lower = one<neg>, .since = 6},
    {.name = "Sign", .lower = sign_of},
    {.name = "Floor", .lower = one<floor>, .since = 6},
    {.name = "Ceil", .lower = one<ceil>, .since = 6},
    {.name = "Round", .lower = one<round>},
    {.name = "Sqrt", .lower = one<sqrt>, .since = 6},
    {.name = "Reciprocal", .lower = one<reciprocal>, .since = 6},
    {.name = "Exp", .lower = one<exp>, .since = 6},
    {.name = "Log", .lower = one<log>, .since = 6},
    {.name = "Erf", .lower = one<erf>},
    {.name = "Sin", .lower = one<sin>},
    {.name = "Cos", .lower = one<cos>},
    {.name = "Tan", .lower = one<tan>},
    {.name = "Asin", .lower = one<asin>},
    {.name = "Acos", .lower = one<acos>},
    {.name = "Atan", .lower = one<atan>},
    {.name = "Sinh", .lower = one<sinh>},
    {.name = "Cosh", .lower = one<cosh>},
    {.name = "Asinh", .lower = one<asinh>},
    {.name = "Acosh", .lower = one<acosh>},
    {.name = "Atanh", .lower = one<atanh>},
    {.name = "Pow", .lower = power, .since = 7},
    {.name = "Mod", .lower = modulo},
    {.name = "Max", .lower = of_many, .since = 6},
    {.name = "Min", .lower = of_many, .since = 6},
    {.name = "Sum", .lower = of_many, .since = 6},
    {.name = "Mean", .lower = of_many, .since = 6},
    {.name = "Clip", .lower = clip, .since = 6},
    {.name = "Equal", .lower = compare<eq>, .since = 7},
    {.name = "Less", .lower = compare<lt>, .since = 7},
    {.name = "LessOrEqual", .lower = compare<le>},
    {.name = "Greater", .lower = compare<gt>, .since = 7},
    {.name = "GreaterOrEqual", .lower = compare<ge>},
    {.name = "And", .lower = logic, .since = 7},
    {.name = "Or", .lower = logic, .since = 7},
    {.name = "Xor", .lower = logic, .since = 7},
    {.name = "Not", .lower = logic},
    {.name = "BitwiseAnd", .lower = bits<bitwise_and>},
    {.name = "BitwiseOr", .lower = bits<bitwise_or>},
    {.name = "BitwiseXor", .lower = bits<bitwise_xor>},
    {.name = "BitwiseNot", .lower = bit_not},
    {.name = "BitShift", .lower = bit_shift},
    {.name = "Where", .lower = choose},
    {.name = "IsInf", .lower = is_infinite},
    {.name = "IsNaN", .lower = is_not_a_number},
    {.name = "Cast", .lower = cast_to, .since = 6},
    {.name = "CastLike", .lower = cast_like},
};

}  // namespace

Operations pointwise_operations() { return kOperations; }

}  // namespace ferrite::onnx::detail
