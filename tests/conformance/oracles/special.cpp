// Oracles and samples of tensor/ops/math.cpp.
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <vector>

#include "conformance/oracles/helpers.h"
#include "ferrite/tensor/kernel/special.h"

namespace oracles::special {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Lgamma {
  static constexpr auto name = "lgamma";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return log_gamma_of(x); }
};

struct Digamma {
  static constexpr auto name = "digamma";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  /// Computes by the recurrence up to 1000, where two terms of the series are exact.
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
  static long double positive(long double x) {
    long double below = 0;
    for (; x < 1000; x += 1) below += 1 / x;
    if (std::isinf(x)) return x;
    return logl(x) - 0.5L / x - 1 / (12 * x * x) + 1 / (120 * x * x * x * x) - below;
  }
};

/// polygamma(1, x), the gradient of digamma.
struct Trigamma {
  static constexpr auto name = "trigamma";
  static constexpr Range domain{0.1, 50};
  static constexpr double kinks[] = {0};
  /// Computes by the recurrence up to 1000, where two terms of the series are exact.
  static double scalar(double x) {
    if (x <= 0) {
      if (x == std::floor(x)) return x == -kInfinity ? std::numeric_limits<double>::quiet_NaN() : kInfinity;
      const long double gap = std::numbers::pi_v<long double> * (static_cast<long double>(x) - std::nearbyint(x));
      const long double ratio = std::numbers::pi_v<long double> / sinl(gap);
      return static_cast<double>(ratio * ratio - positive(1 - static_cast<long double>(x)));
    }
    return static_cast<double>(positive(x));
  }
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
  static constexpr auto name = "polygamma";
  /// Computes the sum of 1 / (x + k)^(n + 1) for k up to 20000, and the integral of the rest.
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

struct Erfc {
  static constexpr auto name = "erfc";
  static constexpr Range domain{-5, 9};
  static double scalar(double x) { return std::erfc(x); }
};

struct Erfinv {
  static constexpr auto name = "erfinv";
  static constexpr Range domain{-0.99, 0.99};
  /// Computes by bisection in long double.
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
};

struct Log10 {
  static constexpr auto name = "log10";
  static constexpr Range domain{0.001, 1000};
  static double scalar(double x) { return std::log10(x); }
};

std::vector<Sample> pairs() {
  return {{.inputs = {{{3, 5}}, {{3, 5}}}},
          {.inputs = {{{2, 3}}, {{3}}}, .range = {-800, 800}, .smooth_at_ties = false},
          {.inputs = {{{4}}, {{4}}},
           .values = {INFINITY, -INFINITY, 1, INFINITY, INFINITY, -INFINITY, -INFINITY, 2},
           .smooth = false},
          {.inputs = {{{}}, {{0, 2}}}}};
}

struct Logaddexp {
  static constexpr auto name = "logaddexp";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) {
    return a == b ? a + std::numbers::ln2 : max_of(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
  static double max_of(double a, double b) { return std::isnan(a) || std::isnan(b) ? a + b : std::fmax(a, b); }
};

struct Logaddexp2 {
  static constexpr auto name = "logaddexp2";
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
  static constexpr auto name = "logit";
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

struct Xlogy {
  static constexpr auto name = "xlogy";
  static constexpr Range domain{0.5, 3};
  static double scalar(double x, double y) { return x == 0 && !std::isnan(y) ? 0 : x * std::log(y); }
};

struct MultiplyNoNan {
  static constexpr auto name = "multiply_no_nan";
  static constexpr Range domain{-10, 10};
  static double scalar(double a, double b) { return b == 0 ? 0 : a * b; }
};

const Added added = add<Lgamma, Digamma, Trigamma, Polygamma, Erfc, Erfinv, Log10, Logaddexp, Xlogy, MultiplyNoNan,
                        Logaddexp2, Logit>();

}  // namespace
}  // namespace oracles::special
