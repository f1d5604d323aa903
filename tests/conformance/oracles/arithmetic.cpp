// Oracles and samples of tensor/ops/arithmetic.cpp.
#include <cmath>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/cheap.h"

namespace oracles::arithmetic {
namespace {

struct Div {
  static constexpr auto name = "div";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static double scalar(double a, double b) { return a / b; }
};

struct Maximum {
  static constexpr auto name = "maximum";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b); }
};

struct Minimum {
  static constexpr auto name = "minimum";
  static constexpr Range domain{-100, 100};
  static double scalar(double a, double b) { return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b); }
};

struct Abs {
  static constexpr auto name = "abs";
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return std::fabs(x); }
};

struct Sign {
  static constexpr auto name = "sign";
  static constexpr Range domain{-10, 10};
  static constexpr double kinks[] = {0};
  static double scalar(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
};

/// a^b. At a = 0 the gradient of the base is 0 for b = 0, and that of the exponent for b >= 0, as in PyTorch.
struct Pow {
  static constexpr auto name = "pow";
  static constexpr Range domain{0.1, 6};
  static double scalar(double a, double b) { return std::pow(a, b); }
};

struct Clamp {
  static constexpr auto name = "clamp";
  static constexpr Range domain{-100, 100};
  static double scalar(double x, double low, double high) {
    if (std::isnan(x) || std::isnan(low) || std::isnan(high)) return NAN;
    return std::fmin(std::fmax(x, low), high);
  }
};

const Added added = add<Div, Pow, Abs, Maximum, Minimum, Sign, Clamp>();

}  // namespace
}  // namespace oracles::arithmetic
