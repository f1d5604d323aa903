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
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * digamma(v.a.tensor())}; }
};

struct Digamma : functors::Digamma {
  static constexpr auto name = "digamma", onnx = "", stablehlo = "", summary = "the derivative of ln Gamma";
  static constexpr Reads reads = reads_inputs;
  static Tensors vjp(const PointwiseVjp& v) { return {v.grad * polygamma(1, v.a.tensor())}; }
};

/// polygamma(1, x), the gradient of digamma.
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

/// larger + f(smaller - larger), where both are the same infinity that itself: smooth at ties, too.
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
  /// Where x = 0 beside a logarithm that is not finite, y is replaced: its gradients are 0.
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
