/// Trigonometric and hyperbolic functions.
#include <limits>
#include <numbers>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

struct Tan : functors::Tan {
  static constexpr auto name = "tan", onnx = "Tan", stablehlo = "", summary = "tan(x), radians";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * (1 + square(v.out))}; }
};

/// 1 / sqrt((1 - x) (1 + x)): no cancellation near the ends.
Tensor arc_slope(const Tensor& x) { return rsqrt((1 - x) * (1 + x)); }

struct Asin : functors::Asin {
  static constexpr auto name = "asin", onnx = "Asin", stablehlo = "", summary = "the angle in -pi/2..pi/2 with sine x";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * arc_slope(v.a.tensor())}; }
};

struct Acos : functors::Acos {
  static constexpr auto name = "acos", onnx = "Acos", stablehlo = "", summary = "the angle in 0..pi with cosine x";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {-v.grad * arc_slope(v.a.tensor())}; }
};

struct Atan : functors::Atan {
  static constexpr auto name = "atan", onnx = "Atan", stablehlo = "",
                        summary = "the angle in -pi/2..pi/2 with tangent x";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad / (1 + square(v.a.tensor()))}; }
};

struct Sinh : functors::Sinh {
  static constexpr auto name = "sinh", onnx = "Sinh", stablehlo = "", summary = "(e^x - e^-x) / 2";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * cosh(v.a.tensor())}; }
};

struct Cosh : functors::Cosh {
  static constexpr auto name = "cosh", onnx = "Cosh", stablehlo = "", summary = "(e^x + e^-x) / 2";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * sinh(v.a.tensor())}; }
};

struct Asinh : functors::Asinh {
  static constexpr auto name = "asinh", onnx = "Asinh", stablehlo = "", summary = "ln(x + sqrt(x^2 + 1))";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * rsqrt(1 + square(v.a.tensor()))}; }
};

struct Acosh : functors::Acosh {
  static constexpr auto name = "acosh", onnx = "Acosh", stablehlo = "", summary = "ln(x + sqrt(x^2 - 1)); NaN below 1";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return {v.grad * rsqrt((x - 1) * (x + 1))};
  }
};

struct Atanh : functors::Atanh {
  static constexpr auto name = "atanh", onnx = "Atanh", stablehlo = "", summary = "ln((1 + x) / (1 - x)) / 2";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    return {v.grad / ((1 - x) * (1 + x))};
  }
};

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// x / r^2 for r = hypot(a, b), without the square; 0 where r is 0 or infinite.
Tensor over_square(const Operand& x, const Operand& a, const Operand& b) {
  const Tensor r = hypot(a, b), none = eq(r, 0.0) || eq(r, kInfinity);
  const Tensor safe = where(none, 1.0, r);
  return where(none, 0.0, x / safe / safe);
}

struct Atan2 : functors::Atan2 {
  static constexpr auto name = "atan2", onnx = "", stablehlo = "atan2", summary = "the angle of the point (b, a)";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * over_square(v.b, v.a, v.b); },
                    [&] { return -v.grad * over_square(v.a, v.a, v.b); });
  }
};

struct Hypot : functors::Hypot {
  static constexpr auto name = "hypot", onnx = "", stablehlo = "", summary = "sqrt(a^2 + b^2) without overflow";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    const auto share = [&](const Operand& x) {
      return v.grad * (x / where(eq(v.out, 0.0), 1.0, v.out));  // 0 at (0, 0)
    };
    return v.wanted([&] { return share(v.a); }, [&] { return share(v.b); });
  }
};

struct Sinc : functors::Sinc {
  static constexpr auto name = "sinc", onnx = "", stablehlo = "", summary = "sin(pi x) / (pi x), 1 at 0";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor& x = v.a.tensor();
    const Tensor slope = (cos(x * std::numbers::pi) - v.out) / x;
    return {v.grad * where(eq(x, 0.0), 0.0, slope)};
  }
};

}  // namespace

Family trigonometry_family() {
  static constexpr const Primitive* list[] = {
      &pointwise<Tan>,   &pointwise<Asin>,  &pointwise<Acos>,  &pointwise<Atan>,  &pointwise<Sinh>,  &pointwise<Cosh>,
      &pointwise<Asinh>, &pointwise<Acosh>, &pointwise<Atanh>, &pointwise<Atan2>, &pointwise<Hypot>, &pointwise<Sinc>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor tan(const Tensor& x) { return pointwise_call<Tan>(x); }
Tensor asin(const Tensor& x) { return pointwise_call<Asin>(x); }
Tensor acos(const Tensor& x) { return pointwise_call<Acos>(x); }
Tensor atan(const Tensor& x) { return pointwise_call<Atan>(x); }
Tensor sinh(const Tensor& x) { return pointwise_call<Sinh>(x); }
Tensor cosh(const Tensor& x) { return pointwise_call<Cosh>(x); }
Tensor asinh(const Tensor& x) { return pointwise_call<Asinh>(x); }
Tensor acosh(const Tensor& x) { return pointwise_call<Acosh>(x); }
Tensor atanh(const Tensor& x) { return pointwise_call<Atanh>(x); }
Tensor atan2(const Operand& y, const Operand& x) { return pointwise_call<Atan2>(y, x); }
Tensor hypot(const Operand& a, const Operand& b) { return pointwise_call<Hypot>(a, b); }
Tensor sinc(const Tensor& x) {
  check_float(x, "sinc");
  return pointwise_call<Sinc>(x);
}

}  // namespace ferrite
