/// Mathematical functions of numbers: trigonometry, rounding, special functions, mixing, comparison within tolerances.
#include "ferrite/tensor/math.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/tensor/allclose.h"
#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

// ---- trigonometric and hyperbolic functions ---------------------------------------------------------------

namespace detail {
namespace {

struct Tan : functors::Tan {
  static constexpr auto name = "tan", onnx = "Tan", stablehlo = "", summary = "tan(x), radians";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * (1 + square(v.out))}; }
};

/// Returns 1 / sqrt((1 - x) (1 + x)), without cancellation near the ends.
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

/// Returns x / r^2 for r = hypot(a, b), without the square; 0 where r is 0 or infinite.
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

// ---- rounding to whole numbers, and division with remainder -----------------------------------------------

namespace detail {
namespace {

/// Common part of rounding functions: a gradient of 0.
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

/// Divides, and refuses divisors 0 of integers; elements are checked in every run of a program.
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

}  // namespace detail

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

// ---- functions of Gamma, of erf, and logarithms that do not overflow --------------------------------------

namespace detail {
namespace {

struct Lgamma : functors::Lgamma {
  static constexpr auto name = "lgamma", onnx = "", stablehlo = "", summary = "ln |Gamma(x)|";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * digamma(v.a.tensor())}; }
};

struct Digamma : functors::Digamma {
  static constexpr auto name = "digamma", onnx = "", stablehlo = "", summary = "the derivative of ln Gamma";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * polygamma(1, v.a.tensor())}; }
};

/// The second derivative of ln Gamma, polygamma(1, x): the gradient of digamma.
struct Trigamma : functors::Trigamma {
  static constexpr auto name = "trigamma", onnx = "", stablehlo = "", summary = "the second derivative of ln Gamma";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * polygamma(2, v.a.tensor())}; }
};

struct PolygammaAttrs {
  int n = 1;
  static constexpr auto fields = attr_list(attr("n", &PolygammaAttrs::n));
};

struct Polygamma {
  using Attributes = PolygammaAttrs;
  static constexpr auto name = "polygamma", onnx = "", stablehlo = "", summary = "the n-th derivative of digamma";
  static constexpr Reads reads = reads_inputs;

  static Specs infer(Inputs in, const Attributes& a) {
    check_float(in[0], name);
    if (a.n < 1 || a.n > kMostPolygamma)
      throw ValueError("polygamma: n must lie in 1.." + std::to_string(kMostPolygamma) + ", got " +
                       std::to_string(a.n));
    return {in[0].spec()};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    const Tensor x = dense(in[0]);
    visit_computed(x.dtype(), [&](auto zero) {
      using T = decltype(zero);
      if constexpr (std::is_floating_point_v<T>) {
        const T* from = x.data<T>();
        T* to = Writer::data<T>(out[0]);
        for (std::int64_t i = 0; i < x.numel(); ++i)
          to[i] = static_cast<T>(polygamma_of(a.n, static_cast<double>(from[i])));
      }
    });
  }
  static Tensors vjp(const Vjp& v, const Attributes& a) {
    return {v.grad() * call(structured<Polygamma>, {{&v.in(0)}}, PolygammaAttrs{a.n + 1})};
  }
};

struct Erfc : functors::Erfc {
  static constexpr auto name = "erfc", onnx = "", stablehlo = "", summary = "1 - erf(x), accurate where that is small";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return {v.grad * (-2 * std::numbers::inv_sqrtpi * exp(-square(v.a.tensor())))};
  }
};

struct Erfinv : functors::Erfinv {
  static constexpr auto name = "erfinv", onnx = "", stablehlo = "",
                        summary = "the inverse of erf; infinite at -1 and 1";
  static constexpr Reads reads = reads_outputs;
  static Tensors vjp(const PointwiseVjp& v) {
    return {v.grad * (std::sqrt(std::numbers::pi) / 2 * exp(square(v.out)))};
  }
};

struct Log10 : functors::Log10 {
  static constexpr auto name = "log10", onnx = "", stablehlo = "", summary = "log to base 10";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad / (v.a * std::numbers::ln10)}; }
};

/// Returns larger + f(smaller - larger); where both are the same infinity, that infinity. Smooth at ties, too.
template <class F>
Tensor added_powers(Inputs in, F f) {
  const Tensor first = gt(in[0], in[1]);
  const Tensor large = where(first, in[0], in[1]), small = where(first, in[1], in[0]);
  const Tensor infinite = eq(large, small) && eq(abs(large), kInfinity);
  return large + f(where(infinite, -kInfinity, small - large));
}

struct Logaddexp : functors::Logaddexp {
  static constexpr auto name = "logaddexp", onnx = "", stablehlo = "", summary = "ln(e^a + e^b) without overflow";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) {
    return {added_powers(in, [](const Tensor& gap) { return softplus(gap); })};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor &a = v.a.tensor(), &b = v.b.tensor();
    const Tensor gap = where(eq(a, b) && eq(abs(a), kInfinity), 0.0, a - b);
    return v.wanted([&] { return v.grad * sigmoid(gap); }, [&] { return v.grad * sigmoid(-gap); });
  }
};

struct Logaddexp2 {
  static constexpr auto name = "logaddexp2", onnx = "", summary = "log2(2^a + 2^b) without overflow";

  static Tensor parts(Inputs in, const NoAttrs&) {
    return added_powers(in, [](const Tensor& gap) { return softplus(gap * std::numbers::ln2) / std::numbers::ln2; });
  }
};

struct LogitAttrs {
  std::optional<double> epsilon{};
  static constexpr auto fields = attr_list(attr("epsilon", &LogitAttrs::epsilon));
};

struct Logit {
  using Attributes = LogitAttrs;
  static constexpr auto name = "logit", onnx = "", summary = "ln(x / (1 - x)), x clamped to epsilon..1 - epsilon";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor x = a.epsilon ? clamp(in[0], *a.epsilon, 1 - *a.epsilon) : in[0];
    return log(x) - log1p(-x);
  }
};

struct Xlogy : functors::Xlogy {
  static constexpr auto name = "xlogy", onnx = "", stablehlo = "", summary = "x ln(y), 0 where x = 0 unless y is NaN";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) {
    const Tensor none = is_none(in[0], in[1]);
    return {where(none, 0.0, in[0] * log(where(none, 1.0, in[1])))};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor &x = v.a.tensor(), &y = v.b.tensor();
    const Tensor none = is_none(x, y), safe = where(none, 1.0, y);
    return v.wanted([&] { return v.grad * log(safe); }, [&] { return v.grad * (where(none, 0.0, x) / safe); });
  }

 private:
  /// Returns where x = 0 and the logarithm of y is not finite: there y is replaced, and gradients are 0.
  static Tensor is_none(const Tensor& x, const Tensor& y) { return eq(x, 0.0) && (le(y, 0.0) || eq(y, kInfinity)); }
};

struct MultiplyNoNan : functors::MultiplyNoNan {
  static constexpr auto name = "multiply_no_nan", onnx = "", stablehlo = "";
  static constexpr auto summary = "a b, 0 where b = 0, whatever a is: infinite or NaN";
  static constexpr Reads reads = reads_inputs;
  static Tensors reference(Inputs in) {
    const Tensor none = eq(in[1], 0.0);
    return {where(none, 0.0, where(none, 0.0, in[0]) * in[1])};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor &a = v.a.tensor(), &b = v.b.tensor();
    return v.wanted([&] { return multiply_no_nan(v.grad, b); },
                    [&] { return v.grad * where(eq(b, 0.0) && !lt(abs(a), kInfinity), 0.0, a); });
  }
};

void check_pair(std::string_view where, const Tensor& a, const Tensor& b) {
  check_float(a, where);
  if (a.dtype() != b.dtype())
    throw_dtype(where, "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
  (void)broadcast(a.shape(), b.shape(), where);
}

template <class Op>
Tensor of_pair(const Tensor& a, const Tensor& b) {
  check_pair(Op::name, a, b);
  if constexpr (PointwiseOp<Op>) {
    return call(pointwise<Op>, {{&a, &b}});
  } else {
    return composed<Op>({{&a, &b}});
  }
}

}  // namespace

}  // namespace detail

Tensor lgamma(const Tensor& x) { return pointwise_call<Lgamma>(x); }
Tensor digamma(const Tensor& x) { return pointwise_call<Digamma>(x); }
Tensor polygamma(std::int64_t n, const Tensor& x) {
  constexpr std::int64_t most = 20;  // derivatives of it have higher n
  if (n < 0 || n > most) throw ValueError("polygamma: n must lie in 0..20, got " + std::to_string(n));
  check_float(x, n == 0 ? "digamma" : "polygamma");
  if (n < 2) return n == 0 ? digamma(x) : pointwise_call<Trigamma>(x);
  return call(structured<Polygamma>, {{&x}}, PolygammaAttrs{static_cast<int>(n)});
}
Tensor erfc(const Tensor& x) { return pointwise_call<Erfc>(x); }
Tensor erfinv(const Tensor& x) { return pointwise_call<Erfinv>(x); }
Tensor log10(const Tensor& x) { return pointwise_call<Log10>(x); }
Tensor exp10(const Tensor& x) { return pow(10.0, x); }
Tensor logaddexp(const Tensor& a, const Tensor& b) { return of_pair<Logaddexp>(a, b); }
Tensor logaddexp2(const Tensor& a, const Tensor& b) { return of_pair<Logaddexp2>(a, b); }
Tensor xlogy(const Tensor& x, const Tensor& y) { return of_pair<Xlogy>(x, y); }
Tensor multiply_no_nan(const Tensor& x, const Tensor& y) { return of_pair<MultiplyNoNan>(x, y); }
Tensor logit(const Tensor& x, std::optional<double> epsilon) {
  check_float(x, "logit");
  if (epsilon && !(*epsilon >= 0 && *epsilon <= 0.5))
    throw ValueError("logit: epsilon must lie in 0..0.5, got " + Scalar(*epsilon).str());
  return composed<Logit>({{&x}}, {epsilon});
}

// ---- mixing and replacing numbers, and tests of numbers ----------------------------------------------------

namespace detail {
namespace {

struct LerpAttrs {
  std::optional<double> weight{};  ///< replaces a third operand
  static constexpr auto fields = attr_list(attr("weight", &LerpAttrs::weight));
};

struct Lerp {
  using Attributes = LerpAttrs;
  static constexpr auto name = "lerp", onnx = "", summary = "a + weight (b - a), from the nearer end";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor &x = in[0], &y = in[1];
    if (a.weight) return *a.weight < 0.5 ? x + *a.weight * (y - x) : y - (1 - *a.weight) * (y - x);
    const Tensor& w = in[2];
    const Tensor back = y - x, from_y = y - (1 - w) * back;  // named in order: docs/numerics.md, rule 13
    const Tensor way = y - x, from_x = x + w * way;
    return where(lt(w, 0.5), from_x, from_y);
  }
};

struct NanToNumAttrs {
  double nan = 0, posinf = 0, neginf = 0;
  static constexpr auto fields = attr_list(attr("nan", &NanToNumAttrs::nan), attr("posinf", &NanToNumAttrs::posinf),
                                           attr("neginf", &NanToNumAttrs::neginf));
};

struct NanToNum {
  using Attributes = NanToNumAttrs;
  static constexpr auto name = "nan_to_num", onnx = "", summary = "finite numbers in place of NaN and infinities";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Tensor& x = in[0];
    const Tensor high = where(eq(x, kInfinity), a.posinf, x);
    return where(ne(x, x), a.nan, where(eq(x, -kInfinity), a.neginf, high));
  }
};

/// a| with b's sign, including that of zeros.
struct Copysign : functors::Copysign {
  static constexpr auto name = "copysign", onnx = "", stablehlo = "";
  static constexpr auto summary = "|a| with b's sign, that of zeros included; gradient 0 at a = 0";
  static constexpr Reads reads = reads_all;
  static Tensors vjp(const PointwiseVjp& v) {
    return v.wanted([&] { return v.grad * (sign(v.out) * sign(v.a.tensor())); }, [&] { return zeros_like(v.grad); });
  }
};

struct Heaviside {
  static constexpr auto name = "heaviside", onnx = "", summary = "0 below 0 and of NaN, 1 above, values at 0";

  static Tensor parts(Inputs in, const NoAttrs&) {
    return where(eq(in[0], 0), in[1], cast(gt(in[0], 0), in[0].dtype()));
  }
};

struct IsNan {
  static constexpr auto name = "isnan", onnx = "IsNaN", summary = "whether x is NaN";
  static Tensor parts(Inputs in, const NoAttrs&) { return ne(in[0], in[0]); }
};

struct IsInf {
  static constexpr auto name = "isinf", onnx = "IsInf", summary = "whether x is an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? eq(abs(in[0]), kInfinity) : ne(in[0], in[0]);
  }
};

struct IsFinite {
  static constexpr auto name = "isfinite", onnx = "", summary = "whether x is neither NaN nor an infinity";
  static Tensor parts(Inputs in, const NoAttrs&) {
    return is_float(in[0].dtype()) ? lt(abs(in[0]), kInfinity) : eq(in[0], in[0]);
  }
};

struct IscloseAttrs {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  static constexpr auto fields = attr_list(attr("rtol", &IscloseAttrs::rtol), attr("atol", &IscloseAttrs::atol),
                                           attr("equal_nan", &IscloseAttrs::equal_nan));
};

struct IsClose {
  using Attributes = IscloseAttrs;
  static constexpr auto name = "isclose", onnx = "", summary = "|a - b| <= atol + rtol |b|, or equal";

  static Tensor parts(Inputs in, const Attributes& a) {
    const bool real = is_float(in[0].dtype());
    const Tensor x = real ? in[0] : cast(in[0], Dtype::f64), y = real ? in[1] : cast(in[1], Dtype::f64);
    const Tensor gap = abs(x - y);
    const Tensor near = lt(gap, kInfinity) && le(gap, a.atol + a.rtol * abs(y));
    const Tensor close = eq(in[0], in[1]) || near;
    return a.equal_nan ? close || (ne(x, x) && ne(y, y)) : close;
  }
};

struct LogicalXor {
  static constexpr auto name = "logical_xor", onnx = "Xor", summary = "exactly one of two is not 0";

  static Tensor parts(Inputs in, const NoAttrs&) { return ne(truth(in[0]), truth(in[1])); }
};

void check_same(std::string_view where, const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype())
    throw_dtype(where, "dtypes differ: " + a.spec().str() + " and " + b.spec().str() + "; cast one of them");
}

}  // namespace

}  // namespace detail

Tensor copysign(const Operand& a, const Operand& b) { return pointwise_call<Copysign>(a, b); }

Tensor lerp(const Tensor& a, const Tensor& b, const Operand& weight) {
  check_float(a, "lerp");
  check_same("lerp", a, b);
  if (weight.is_literal()) return composed<Lerp>({{&a, &b}}, {weight.scalar().real()});
  check_same("lerp", a, weight.tensor());
  return composed<Lerp>({{&a, &b, &weight.tensor()}});
}

Tensor nan_to_num(const Tensor& x, const NanToNumOptions& options) {
  check_float(x, "nan_to_num");
  const double most = x.dtype() == Dtype::f32 ? static_cast<double>(std::numeric_limits<float>::max())
                                              : std::numeric_limits<double>::max();
  return composed<NanToNum>({{&x}}, {options.nan, options.posinf.value_or(most), options.neginf.value_or(-most)});
}

Tensor heaviside(const Tensor& x, const Tensor& values) {
  check_same("heaviside", x, values);
  if (x.dtype() == Dtype::boolean) throw_dtype("heaviside", "bool is not supported; it takes numbers");
  return composed<Heaviside>({{&x, &values}});
}

Tensor isnan(const Tensor& x) { return composed<IsNan>({{&x}}); }
Tensor isinf(const Tensor& x) { return composed<IsInf>({{&x}}); }
Tensor isfinite(const Tensor& x) { return composed<IsFinite>({{&x}}); }

Tensor isclose(const Tensor& a, const Tensor& b, const IscloseOptions& options) {
  check_same("isclose", a, b);
  for (const double tolerance : {options.rtol, options.atol})
    if (!(tolerance >= 0)) throw ValueError("isclose: tolerances must not be negative, got " + Scalar(tolerance).str());
  return composed<IsClose>({{&a, &b}}, {options.rtol, options.atol, options.equal_nan});
}

Tensor logical_xor(const Tensor& a, const Tensor& b) { return composed<LogicalXor>({{&a, &b}}); }

// ---- whether tensors are equal up to rounding --------------------------------------------------------------

namespace {

std::vector<double> values_of(const Tensor& x, const Shape& shape) {
  const Tensor all = expand(x, shape);
  return visit_dtype(x.dtype(), [&](auto zero) {
    std::vector<double> values;
    for (const auto v : all.to_vector<decltype(zero)>()) values.push_back(static_cast<double>(v));
    return values;
  });
}

}  // namespace

bool allclose(const Tensor& a, const Tensor& b, const CloseOptions& options) {
  detail::check_not_negative("allclose: the tolerances", {options.relative, options.absolute});
  if (a.is_abstract() || b.is_abstract())
    throw TraceError("allclose: it reads values, and these are traced: " + a.spec().str() + " and " + b.spec().str() +
                     "; call it outside of the traced function");
  const NewFrame frame;
  const Shape shape = broadcast(a.shape(), b.shape(), "allclose");
  const std::vector<double> x = values_of(a, shape), y = values_of(b, shape);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (options.equal_nan && std::isnan(x[i]) && std::isnan(y[i]))) continue;
    if (std::isinf(x[i]) || std::isinf(y[i])) return false;
    if (!(std::fabs(x[i] - y[i]) <= options.absolute + options.relative * std::fabs(y[i]))) return false;
  }
  return true;
}

// ---- families of operations ------------------------------------------------------------------------------

namespace detail {

Family math_family() {
  static constexpr const Primitive* list[] = {
      &pointwise<Tan>,           &pointwise<Asin>,      &pointwise<Acos>,        &pointwise<Atan>,
      &pointwise<Sinh>,          &pointwise<Cosh>,      &pointwise<Asinh>,       &pointwise<Acosh>,
      &pointwise<Atanh>,         &pointwise<Atan2>,     &pointwise<Hypot>,       &pointwise<Sinc>,
      &pointwise<Floor>,         &pointwise<Ceil>,      &pointwise<Round>,       &pointwise<Trunc>,
      &pointwise<Fmod>,          &pointwise<Remainder>, &pointwise<FloorDivide>, &pointwise<Lgamma>,
      &pointwise<Digamma>,       &pointwise<Trigamma>,  &structured<Polygamma>,  &pointwise<Erfc>,
      &pointwise<Erfinv>,        &pointwise<Log10>,     &pointwise<Logaddexp>,   &pointwise<Xlogy>,
      &pointwise<MultiplyNoNan>, &pointwise<Copysign>};
  return list;
}

Family composite_math_family() {
  static constexpr const Primitive* list[] = {&composite<Frac>,      &composite<RoundDecimals>, &composite<Logaddexp2>,
                                              &composite<Logit>,     &composite<Lerp>,          &composite<NanToNum>,
                                              &composite<Heaviside>, &composite<IsNan>,         &composite<IsInf>,
                                              &composite<IsFinite>,  &composite<IsClose>,       &composite<LogicalXor>};
  return list;
}

}  // namespace detail
}  // namespace ferrite
