/// Gamma's logarithm, its derivatives, and the inverse of erf, for one number.
#include <math.h>  // lgamma_r, which std does not name

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "ferrite/tensor/kernel/special.h"

namespace ferrite::detail {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Bernoulli's numbers B_2, B_4, ...
constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30,       1.0 / 42,       -1.0 / 30,
                                 5.0 / 66,      -691.0 / 2730,   7.0 / 6,        -3617.0 / 510,
                                 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};

/// zeta(s, x) = sum of (x + k)^-s over k >= 0, s > 1, x > 0.
double hurwitz_zeta(int s, double x) {
  double total = 0, a = x;
  for (int k = 0; k < 12 || a < 12; ++k, a += 1) total += std::pow(a, -s);
  const double power = std::pow(a, -s);
  total += power * a / (s - 1) + power / 2;
  double term = power * s / a;  // s (s + 1) ... a^-(s + 2k - 1) / (2k)!
  double factorial = 2;
  for (int k = 0; k < 12; ++k) {
    total += kBernoulli[k] * term / factorial;
    term *= (s + 2.0 * k + 1) * (s + 2.0 * k + 2) / (a * a);
    factorial *= (2.0 * k + 3) * (2.0 * k + 4);
  }
  return total;
}

/// The n-th derivative of cot by its polynomial in c = cot: P' = -(1 + c^2) dP/dc.
double cotangent_derivative(int n, double c) {
  std::array<double, kMostPolygamma + 3> p{};
  p[1] = 1;
  for (int step = 0; step < n; ++step) {
    std::array<double, kMostPolygamma + 3> next{};
    for (std::size_t k = 1; k + 1 < p.size(); ++k) {
      next[k - 1] -= static_cast<double>(k) * p[k];
      next[k + 1] -= static_cast<double>(k) * p[k];
    }
    p = next;
  }
  double value = 0;
  for (std::size_t k = p.size(); k-- > 0;) value = value * c + p[k];
  return value;
}

/// cot(pi x), from the distance to the nearest whole number.
double cotangent_of_pi(double x) { return 1 / std::tan(kPi * (x - std::nearbyint(x))); }

}  // namespace

double log_gamma_of(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

double digamma_of(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
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

double polygamma_of(int n, double x) {
  const double sign = n % 2 == 1 ? 1 : -1;
  if (std::isnan(x)) return x;
  if (x <= 0) {
    if (std::isinf(x)) return kNan;
    if (x == std::floor(x)) return sign * kInfinity;
    const double c = cotangent_derivative(n, cotangent_of_pi(x)) * std::pow(kPi, n + 1);
    return -sign * polygamma_of(n, 1 - x) - c;
  }
  if (std::isinf(x)) return sign * 0.0;
  return sign * std::tgamma(n + 1.0) * hurwitz_zeta(n + 1, x);
}

double erfinv_of(double y, int steps) {
  const double size = std::fabs(y);
  if (!(size <= 1)) return kNan;
  if (size == 1) return std::copysign(kInfinity, y);
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
  if (left < 1e-8) {             // beyond that approximation: steps on ln erfc, which is nearly a parabola
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

}  // namespace ferrite::detail
