/// Rounding to whole numbers, and division with remainder.
#include <cmath>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

/// What rounding functions share: a gradient of 0.
struct Rounding {
  static Tensors vjp(const PointwiseVjp& v) { return {zeros_like(v.grad)}; }
};

struct Floor : functors::Floor, Rounding {
  static constexpr auto name = "floor", onnx = "Floor", stablehlo = "floor", summary = "rounded down; gradient 0";
};

struct Ceil : functors::Ceil, Rounding {
  static constexpr auto name = "ceil", onnx = "Ceil", stablehlo = "ceil", summary = "rounded up; gradient 0";
};

struct Round : functors::Round, Rounding {
  static constexpr auto name = "round", onnx = "Round", stablehlo = "round_nearest_even";
  static constexpr auto summary = "to the nearest whole number, halves to even ones; gradient 0";
};

struct Trunc : functors::Trunc, Rounding {
  static constexpr auto name = "trunc", onnx = "", stablehlo = "", summary = "rounded toward zero; gradient 0";
};

struct Frac {
  static constexpr auto name = "frac", onnx = "", summary = "x - trunc(x)";

  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] - trunc(in[0]); }
};

struct DecimalsAttrs {
  int decimals = 0;
  static constexpr auto fields = attr_list(attr("decimals", &DecimalsAttrs::decimals));
};

struct RoundDecimals {
  using Attributes = DecimalsAttrs;
  static constexpr auto name = "round_decimals", onnx = "", summary = "round(x 10^decimals) / 10^decimals; gradient 0";

  static Tensor parts(Inputs in, const Attributes& a) {
    const double ten = std::pow(10.0, std::abs(a.decimals));
    return a.decimals < 0 ? round(in[0] / ten) * ten : round(in[0] * ten) / ten;
  }
};

// ---- division with remainder -------------------------------------------------------------------------------

struct Division {};

struct Fmod : functors::Fmod, Division {
  static constexpr auto name = "fmod", onnx = "Mod", stablehlo = "remainder";
  static constexpr auto summary = "a - b trunc(a / b), of a's sign";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad * trunc(v.a / v.b); });
  }
};

struct Remainder : functors::Remainder, Division {
  static constexpr auto name = "remainder", onnx = "Mod", stablehlo = "";
  static constexpr auto summary = "a - b floor(a / b), of b's sign";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad * floor_divide(v.a, v.b); });
  }
};

struct FloorDivide : functors::FloorDivide, Division {
  static constexpr auto name = "floor_divide", onnx = "", stablehlo = "", summary = "floor(a / b); gradient 0";
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return zeros_like(v.grad); }, [&] { return zeros_like(v.grad); });
  }
};

/// Refuses divisors 0 of integers, an element in every run of a program.
template <class Op>
Tensor divided(const Operand& a, const Operand& b, Label divisor) {
  if (b.is_literal()) {
    if (!a.is_literal() && !is_float(a.tensor().dtype()) && b.scalar().real() == 0)
      throw ValueError(std::string(Op::name) + ": the divisor of integers must not be 0");
    return pointwise_call<Op>(a, b);
  }
  const Dtype dtype = b.tensor().dtype();
  if (!is_float(dtype) && dtype != Dtype::boolean) checked(abs(clamp(b.tensor(), -1, 1)), 1, 1, divisor);
  return pointwise_call<Op>(a, b);
}

}  // namespace

Family rounding_family() {
  static constexpr const Primitive* list[] = {&pointwise<Floor>,      &pointwise<Ceil>, &pointwise<Round>,
                                              &pointwise<Trunc>,      &pointwise<Fmod>, &pointwise<Remainder>,
                                              &pointwise<FloorDivide>};
  return list;
}
Family composite_rounding_family() {
  static constexpr const Primitive* list[] = {&composite<Frac>, &composite<RoundDecimals>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor floor(const Tensor& x) { return pointwise_call<Floor>(x); }
Tensor ceil(const Tensor& x) { return pointwise_call<Ceil>(x); }
Tensor round(const Tensor& x) { return pointwise_call<Round>(x); }
Tensor round(const Tensor& x, int decimals) {
  check_float(x, "round");
  if (decimals < -300 || decimals > 300)
    throw ValueError("round: decimals must lie in -300..300, got " + std::to_string(decimals));
  return composed<RoundDecimals>({{&x}}, {decimals});
}
Tensor trunc(const Tensor& x) { return pointwise_call<Trunc>(x); }
Tensor frac(const Tensor& x) {
  check_float(x, "frac");
  return composed<Frac>({{&x}});
}
Tensor fmod(const Operand& a, const Operand& b) {
  return divided<Fmod>(a, b, "fmod: the divisor of integers must not be 0.");
}
Tensor remainder(const Operand& a, const Operand& b) {
  return divided<Remainder>(a, b, "remainder: the divisor of integers must not be 0.");
}
Tensor floor_divide(const Operand& a, const Operand& b) {
  return divided<FloorDivide>(a, b, "floor_divide: the divisor of integers must not be 0.");
}

}  // namespace ferrite
