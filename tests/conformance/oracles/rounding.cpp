// Oracles and samples of tensor/ops/math.cpp.
#include <cmath>
#include <vector>

#include "conformance/oracles/helpers.h"

namespace oracles::rounding {
namespace {

/// The base of rounding functions, whose gradient is 0.
struct Rounding {
  static constexpr Range domain{-100, 100};
  static constexpr double kinks[] = {-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2};
};

struct Floor : Rounding {
  static constexpr auto name = "floor";
  static double scalar(double x) { return std::floor(x); }
};

struct Ceil : Rounding {
  static constexpr auto name = "ceil";
  static double scalar(double x) { return std::ceil(x); }
};

struct Round : Rounding {
  static constexpr auto name = "round";
  static double scalar(double x) { return std::nearbyint(x); }
};

struct Trunc : Rounding {
  static constexpr auto name = "trunc";
  static double scalar(double x) { return std::trunc(x); }
};

struct Frac {
  static constexpr auto name = "frac";
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
  static constexpr auto name = "round_decimals";
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

/// Returns the remainder with the divisor's sign.
double python_rest(double a, double b) {
  const double r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// Returns Python's floor division: the quotient of a without the remainder, which is whole up to rounding.
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
  static constexpr Range domain{1.1, 10};  // excludes 0 and quotients that jump at whole numbers
};

struct Fmod : Division {
  static constexpr auto name = "fmod";
  static double scalar(double a, double b) { return std::fmod(a, b); }
};

struct Remainder : Division {
  static constexpr auto name = "remainder";
  static double scalar(double a, double b) { return python_rest(a, b); }
};

struct FloorDivide : Division {
  static constexpr auto name = "floor_divide";
  static double scalar(double a, double b) { return floor_quotient(a, b); }
};

const Added added = add<Floor, Ceil, Round, Trunc, Fmod, Remainder, FloorDivide, Frac, RoundDecimals>();

}  // namespace
}  // namespace oracles::rounding
