/// The logarithm of Gamma, its derivatives, and the inverse of erf, for one number.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>

#include "ferrite/tensor/kernel/special.h"
#include "ferrite/tensor/system/system.h"

namespace ferrite::detail {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Bernoulli numbers B_2, B_4, ...
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

/// Returns a^-n times a factor, which may bring it back into range where the power alone is not a normal number.
double scaled_power(double a, int n, double factor) {
  const double power = whole_power(a, -n);
  if (power > 1e-290) return power * factor;
  const int half = n / 2;
  return whole_power(a, -half) * factor * whole_power(a, half - n);
}

/// Returns factor zeta(s, x), zeta(s, x) = the sum of (x + k)^-s over k >= 0, s > 1, x > 0: terms up to 24, the
/// smallest first, and the Euler-Maclaurin sum of the others, a^(1 - s) (1 / (s - 1) + 1 / (2 a) + sum of B_2k s
/// (s + 1) ... (s + 2k - 2) / (2k)! a^-2k).
double hurwitz_zeta(int s, double x, double factor) {
  constexpr double kEnough = 24;
  const int terms = x < kEnough ? static_cast<int>(std::ceil(kEnough - x)) : 0;
  const double a = x + terms;
  double series = 0, term = s / (2 * a * a);
  for (int k = 1; k <= 12; ++k) {
    series += kBernoulli[k - 1] * term;
    term *= (s + 2.0 * k - 1) * (s + 2.0 * k) / ((2.0 * k + 1) * (2.0 * k + 2) * a * a);
  }
  double total = scaled_power(a, s - 1, factor * (1.0 / (s - 1) + (0.5 / a + series)));
  for (int k = terms; k-- > 0;) total += scaled_power(x + k, s, factor);
  return total;
}

/// Returns cot(pi x), from the distance to the nearest whole number.
double cotangent_of_pi(double x) {
  const double r = x - std::nearbyint(x), size = std::fabs(r);
  if (size <= 0.25) return 1 / std::tan(kPi * r);
  return std::copysign(std::tan(kPi * (0.5 - size)), r);
}

}  // namespace

double log_gamma_of(double x) { return log_gamma(x); }

double digamma_of(double x) {
  if (x == 0) return std::copysign(kUnbounded, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNan;
    return digamma_of(1 - x) - kPi * cotangent_of_pi(x);
  }
  double below = 0;
  for (; x < 10; x += 1) below += 1 / x;
  if (std::isinf(x)) return x;
  const double square = 1 / (x * x);
  double series = 0;
  for (int k = 8; k-- > 0;) series = (series + kBernoulli[k] / (2.0 * k + 2)) * square;
  return std::log(x) - 0.5 / x - series - below;
}

namespace {

/// Returns factor (a^-s - b^-s), gap = b - a, with all digits for a small gap.
double power_difference(double a, double b, double gap, int s, double factor) {
  if (std::fabs(gap) > a / 4) return scaled_power(a, s, factor) - scaled_power(b, s, factor);
  return scaled_power(b, s, factor) * std::expm1(s * std::log1p(gap / a));
}

/// Returns factor times the sum of (x + k)^-s over k >= 0 for x < 0, from the distances to the poles on both sides of
/// x, which are exact: those of the poles up to 0 are left + k, k < poles, the others right + k. For odd s their terms
/// have two signs: those of equal k are subtracted before they are added up. (A reflection would have the digits of a
/// power of a cotangent.)
double zeta_below(int s, double x, double factor) {
  constexpr double kPairs = 24;
  const double poles = std::ceil(-x), left = -(x + (poles - 1)), right = x + poles, last = 1 - x;
  const double pairs = std::min(poles, kPairs), sign = s % 2 == 0 ? 1 : -1;
  double total = hurwitz_zeta(s, right + pairs, factor);
  if (poles > pairs) {
    total += sign * hurwitz_zeta(s, left + pairs, factor);
    total -= sign * hurwitz_zeta(s, last, factor);  // the smallest term, and the only one between two equal distances
  }
  for (double k = pairs; k-- > 0;)
    total += sign > 0 ? scaled_power(left + k, s, factor) + scaled_power(right + k, s, factor)
                      : power_difference(right + k, left + k, left - right, s, factor);
  return total;
}

}  // namespace

double polygamma_of(int n, double x) {
  const double sign = n % 2 == 1 ? 1 : -1;
  if (std::isnan(x)) return x;
  double factor = sign;
  for (int k = 2; k <= n; ++k) factor *= k;
  if (x > 0) return std::isinf(x) ? sign * 0.0 : hurwitz_zeta(n + 1, x, factor);
  if (std::isinf(x)) return kNan;
  return x == std::floor(x) ? sign * kUnbounded : zeta_below(n + 1, x, factor);
}

double erfinv_of(double y, int steps) {
  const double size = std::fabs(y);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kUnbounded, y);
  if (size < 1e-9) return y * (std::sqrt(kPi) / 2);
  // Giles, "Approximating the erfinv function", single precision.
  double w = -std::log((1 - size) * (1 + size)), p = 0;
  if (w < 5) {
    w -= 2.5;
    for (const double c : {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                           -0.00125372503, -0.00417768164, 0.246640727, 1.50140941})
      p = p * w + c;
  } else {
    w = std::sqrt(w) - 3;
    for (const double c : {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
                           0.00943887047, 1.00167406, 2.83297682})
      p = p * w + c;
  }
  double x = p * size;
  const double left = 1 - size;  // exact from 1 / 2 on
  if (left < 1e-8) {             // beyond the approximation: steps on ln erfc, which is nearly a parabola
    x = std::sqrt(-std::log(left));
    for (int step = 0; step < 4; ++step) {
      const double tail = std::erfc(x);
      x += std::log(tail / left) * tail / (2 * std::numbers::inv_sqrtpi * std::exp(-x * x));
    }
  }
  for (int step = 0; step < steps; ++step) {
    const double error = size < 0.5 ? std::erf(x) - size : left - std::erfc(x);
    x -= error / (2 * std::numbers::inv_sqrtpi * std::exp(-x * x));
  }
  return std::copysign(x, y);
}

double bessel_i0(double x) {
  double term = 1, total = 1;
  for (int k = 1; term > total * 1e-17; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    total += term;
  }
  return total;
}

}  // namespace ferrite::detail
