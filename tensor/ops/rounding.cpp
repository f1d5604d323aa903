/// Rounding to whole numbers, and division with remainder.
#include <cmath>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

/// What rounding functions share: a gradient of 0.
struct Rounding {
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2};
  static Tensors vjp(const PointwiseVjp& v) { return {zeros_like(v.grad)}; }
};

struct Floor : functors::Floor, Rounding {
  static constexpr auto name = "floor", onnx = "Floor", stablehlo = "floor", summary = "rounded down; gradient 0";
  static double scalar(double x) { return std::floor(x); }
};

struct Ceil : functors::Ceil, Rounding {
  static constexpr auto name = "ceil", onnx = "Ceil", stablehlo = "ceil", summary = "rounded up; gradient 0";
  static double scalar(double x) { return std::ceil(x); }
};

struct Round : functors::Round, Rounding {
  static constexpr auto name = "round", onnx = "Round", stablehlo = "round_nearest_even";
  static constexpr auto summary = "to the nearest whole number, halves to even ones; gradient 0";
  static double scalar(double x) { return std::nearbyint(x); }
};

struct Trunc : functors::Trunc, Rounding {
  static constexpr auto name = "trunc", onnx = "", stablehlo = "", summary = "rounded toward zero; gradient 0";
  static double scalar(double x) { return std::trunc(x); }
};

struct Frac {
  static constexpr auto name = "frac", onnx = "", summary = "x - trunc(x)";

  static Tensor parts(Inputs in, const NoAttrs&) { return in[0] - trunc(in[0]); }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    map_oracle(in, out, [](double x) { return x - std::trunc(x); });
  }
  static std::vector<Sample> samples() { return numbers({}, {-8, 8}, false); }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    const double ten = std::pow(10.0, std::abs(a.decimals));
    map_oracle(in, out, [&](double x) {
      return a.decimals < 0 ? std::nearbyint(x / ten) * ten : std::nearbyint(x * ten) / ten;
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .attrs = DecimalsAttrs{1}, .smooth_at_ties = false},
            {.inputs = {{{3, 5}}}, .attrs = DecimalsAttrs{-1}, .range = {-80, 80}, .smooth_at_ties = false}};
  }
};

// ---- division with remainder -------------------------------------------------------------------------------

/// The rest with the divisor's sign.
double python_rest(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// Python's: the quotient of what is left without the rest, so that it is whole to a rounding.
double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  const double r = std::fmod(a, b);
  double q = (a - r) / b;
  if (r != 0 && (r < 0) != (b < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  const double whole = std::floor(q);
  return q - whole > 0.5 ? whole + 1 : whole;
}

struct Division {
  static constexpr Range domain{1.1, 10};  // 0 and quotients that jump at whole numbers stay out
};

struct Fmod : functors::Fmod, Division {
  static constexpr auto name = "fmod", onnx = "Mod", stablehlo = "remainder";
  static constexpr auto summary = "a - b trunc(a / b), of a's sign";
  static constexpr Reads reads = reads_inputs;
  static double scalar(double a, double b) { return std::fmod(a, b); }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad * trunc(v.a / v.b); });
  }
};

struct Remainder : functors::Remainder, Division {
  static constexpr auto name = "remainder", onnx = "Mod", stablehlo = "";
  static constexpr auto summary = "a - b floor(a / b), of b's sign";
  static constexpr Reads reads = reads_inputs;
  static double scalar(double a, double b) { return python_rest(a, b); }
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad; }, [&] { return -v.grad * floor_divide(v.a, v.b); });
  }
};

struct FloorDivide : functors::FloorDivide, Division {
  static constexpr auto name = "floor_divide", onnx = "", stablehlo = "", summary = "floor(a / b); gradient 0";
  static double scalar(double a, double b) { return floor_quotient(a, b); }
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
