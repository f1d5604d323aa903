/// Special functions: of Gamma, of erf, and logarithms that do not overflow.
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/ops/detail/composing.h"

namespace ferrite {
namespace detail {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Lgamma : functors::Lgamma {
  static constexpr auto name = "lgamma", onnx = "", stablehlo = "", summary = "ln |Gamma(x)|";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double x) { return log_gamma_of(x); }
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * digamma(v.a.tensor())}; }
};

struct Digamma : functors::Digamma {
  static constexpr auto name = "digamma", onnx = "", stablehlo = "", summary = "the derivative of ln Gamma";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_inputs;
  /// By the recurrence up to 1000, where two terms of the series are exact.
  static double scalar(double x) {
    if (x == 0) return std::copysign(kInfinity, -x);
    if (x < 0) {
      if (x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
      const long double gap = std::numbers::pi_v<long double> * (static_cast<long double>(x) - std::nearbyint(x));
      return static_cast<double>(positive(1 - static_cast<long double>(x)) -
                                 std::numbers::pi_v<long double> / tanl(gap));
    }
    return static_cast<double>(positive(x));
  }
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * polygamma(1, v.a.tensor())}; }

 private:
  static long double positive(long double x) {
    long double below = 0;
    for (; x < 1000; x += 1) below += 1 / x;
    if (std::isinf(x)) return x;
    return logl(x) - 0.5L / x - 1 / (12 * x * x) + 1 / (120 * x * x * x * x) - below;
  }
};

/// polygamma(1, x), the gradient of digamma.
struct Trigamma : functors::Trigamma {
  static constexpr auto name = "trigamma", onnx = "", stablehlo = "", summary = "the second derivative of ln Gamma";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  static constexpr Reads reads = reads_inputs;
  /// By the recurrence up to 1000, where two terms of the series are exact.
  static double scalar(double x) {
    if (x <= 0) {
      if (x == std::floor(x)) return x == -kInfinity ? std::numeric_limits<double>::quiet_NaN() : kInfinity;
      const long double gap = std::numbers::pi_v<long double> * (static_cast<long double>(x) - std::nearbyint(x));
      const long double ratio = std::numbers::pi_v<long double> / sinl(gap);
      return static_cast<double>(ratio * ratio - positive(1 - static_cast<long double>(x)));
    }
    return static_cast<double>(positive(x));
  }
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * polygamma(2, v.a.tensor())}; }

 private:
  static long double positive(long double x) {
    long double below = 0;
    for (; x < 1000; x += 1) below += 1 / (x * x);
    return 1 / x + 1 / (2 * x * x) + 1 / (6 * x * x * x) - 1 / (30 * x * x * x * x * x) + below;
  }
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
  /// The sum of 1 / (x + k)^(n + 1), k up to 20000, and the integral of the rest.
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) {
      long double total = 0, factorial = 1;
      const int most = 20000;
      for (int k = most - 1; k >= 0; --k) total += powl(static_cast<long double>(x) + k, -(a.n + 1));
      const long double end = static_cast<long double>(x) + most;
      total += powl(end, -a.n) / a.n + powl(end, -(a.n + 1)) / 2 + (a.n + 1) * powl(end, -(a.n + 2)) / 12;
      for (int k = 2; k <= a.n; ++k) factorial *= k;
      return static_cast<double>((a.n % 2 == 1 ? 1 : -1) * factorial * total);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}}, .attrs = PolygammaAttrs{1}, .range = {0.5, 30}},
            {.inputs = {{{5}}}, .attrs = PolygammaAttrs{2}, .range = {1, 6}},
            {.inputs = {{{3}}}, .attrs = PolygammaAttrs{3}, .range = {-4, -3}, .values = {-3.5, -0.25, 2.5}},
            {.inputs = {{{0}}}, .attrs = PolygammaAttrs{1}}};
  }
};

struct Erfc : functors::Erfc {
  static constexpr auto name = "erfc", onnx = "", stablehlo = "", summary = "1 - erf(x), accurate where that is small";
  static constexpr Range domain{-5, 9};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double x) { return std::erfc(x); }
  static Tensors vjp(const PointwiseVjp& v) {
    return {v.grad * (-2 * std::numbers::inv_sqrtpi * exp(-square(v.a.tensor())))};
  }
};

struct Erfinv : functors::Erfinv {
  static constexpr auto name = "erfinv", onnx = "", stablehlo = "",
                        summary = "the inverse of erf; infinite at -1 and 1";
  static constexpr Range domain{-0.99, 0.99};
  static constexpr Reads reads = reads_outputs;
  /// By bisection in long double.
  static double scalar(double y) {
    const long double size = std::fabs(y);
    if (!(size <= 1)) return std::numeric_limits<double>::quiet_NaN();
    if (size == 1) return std::copysign(kInfinity, y);
    long double low = 0, high = size < 0.5L ? size : 8;
    for (int step = 0; step < 200; ++step) {
      const long double middle = (low + high) / 2;
      const bool below = size < 0.5L ? erfl(middle) < size : erfcl(middle) > 1 - size;
      (below ? low : high) = middle;
    }
    return std::copysign(static_cast<double>((low + high) / 2), y);
  }
  static Tensors vjp(const PointwiseVjp& v) {
    return {v.grad * (std::sqrt(std::numbers::pi) / 2 * exp(square(v.out)))};
  }
};

struct Log10 : functors::Log10 {
  static constexpr auto name = "log10", onnx = "", stablehlo = "", summary = "log to base 10";
  static constexpr Range domain{0.001, 1000};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double x) { return std::log10(x); }
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad / (v.a * std::numbers::ln10)}; }
};

/// larger + f(smaller - larger), where both are the same infinity that itself: smooth at ties, too.
template <class F>
Tensor added_powers(Inputs in, F f) {
  const Tensor first = gt(in[0], in[1]);
  const Tensor large = where(first, in[0], in[1]), small = where(first, in[1], in[0]);
  const Tensor infinite = eq(large, small) && eq(abs(large), kInfinity);
  return large + f(where(infinite, -kInfinity, small - large));
}

std::vector<Sample> pairs() {
  return {{.inputs = {{{3, 5}}, {{3, 5}}}},
          {.inputs = {{{2, 3}}, {{3}}}, .range = {-800, 800}, .smooth_at_ties = false},
          {.inputs = {{{4}}, {{4}}},
           .values = {INFINITY, -INFINITY, 1, INFINITY, INFINITY, -INFINITY, -INFINITY, 2},
           .smooth = false},
          {.inputs = {{{}}, {{0, 2}}}}};
}

struct Logaddexp : functors::Logaddexp {
  static constexpr auto name = "logaddexp", onnx = "", stablehlo = "", summary = "ln(e^a + e^b) without overflow";
  static constexpr Range domain{-100, 100};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double a, double b) {
    return a == b ? a + std::numbers::ln2 : max_of(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
  static Tensors reference(Inputs in) {
    return {added_powers(in, [](const Tensor& gap) { return softplus(gap); })};
  }
  static Tensors vjp(const PointwiseVjp& v) {
    const Tensor &a = v.a.tensor(), &b = v.b.tensor();
    const Tensor gap = where(eq(a, b) && eq(abs(a), kInfinity), 0.0, a - b);
    return v.wanted([&] { return v.grad * sigmoid(gap); }, [&] { return v.grad * sigmoid(-gap); });
  }

 private:
  static double max_of(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b); }
};

struct Logaddexp2 {
  static constexpr auto name = "logaddexp2", onnx = "", summary = "log2(2^a + 2^b) without overflow";

  static Tensor parts(Inputs in, const NoAttrs&) {
    return added_powers(in, [](const Tensor& gap) { return softplus(gap * std::numbers::ln2) / std::numbers::ln2; });
  }
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const NoAttrs&) {
    zip_oracle(in, out, [](double a, double b) {
      return a == b ? a + 1 : std::fmax(a, b) + std::log1p(std::exp2(-std::fabs(a - b))) / std::numbers::ln2;
    });
  }
  static std::vector<Sample> samples() { return pairs(); }
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
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    map_oracle(in, out, [&](double x) {
      if (a.epsilon) x = std::fmin(std::fmax(x, *a.epsilon), 1 - *a.epsilon);
      return std::log(x) - std::log1p(-x);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 5}}}, .range = {0.05, 0.95}},
            {.inputs = {{{3, 5}}}, .attrs = LogitAttrs{0.125}, .range = {-1, 2}, .smooth_at_ties = false}};
  }
};

struct Xlogy : functors::Xlogy {
  static constexpr auto name = "xlogy", onnx = "", stablehlo = "", summary = "x ln(y), 0 where x = 0 unless y is NaN";
  static constexpr Range domain{0.5, 3};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double x, double y) { return x == 0 && !std::isnan(y) ? 0 : x * std::log(y); }
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
  /// Where x = 0 beside a logarithm that is not finite, y is replaced: its gradients are 0.
  static Tensor is_none(const Tensor& x, const Tensor& y) { return eq(x, 0.0) && (le(y, 0.0) || eq(y, kInfinity)); }
};

struct MultiplyNoNan : functors::MultiplyNoNan {
  static constexpr auto name = "multiply_no_nan", onnx = "", stablehlo = "";
  static constexpr auto summary = "a b, 0 where b = 0, whatever a is: infinite or NaN";
  static constexpr Range domain{-10, 10};
  static constexpr Reads reads = reads_inputs;
  static double scalar(double a, double b) { return b == 0 ? 0 : a * b; }
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

Family special_family() {
  static constexpr const Primitive* list[] = {&pointwise<Lgamma>,       &pointwise<Digamma>,   &pointwise<Trigamma>,
                                              &structured<Polygamma>,   &pointwise<Erfc>,      &pointwise<Erfinv>,
                                              &pointwise<Log10>,        &pointwise<Logaddexp>, &pointwise<Xlogy>,
                                              &pointwise<MultiplyNoNan>};
  return list;
}
Family composite_special_family() {
  static constexpr const Primitive* list[] = {&composite<Logaddexp2>, &composite<Logit>};
  return list;
}

}  // namespace detail

using namespace detail;

Tensor lgamma(const Tensor& x) { return pointwise_call<Lgamma>(x); }
Tensor digamma(const Tensor& x) { return pointwise_call<Digamma>(x); }
Tensor polygamma(std::int64_t n, const Tensor& x) {
  constexpr std::int64_t most = 20;  // derivatives of it are of higher n
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

}  // namespace ferrite
