#pragma once
/// The error function of packets, and what is made of it. Errors in ULP over the whole range (tests/ranges, on every
/// instruction set); f32: erf, erfc 4, gelu 6, below 0 6 + 1.3 x^2; f64, the C library's lane by lane: gelu 6.
#include "ferrite/tensor/kernel/packet_doubles.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Phi(-a) e^(a^2 / 2) for a >= 0, Phi the normal distribution function: t times a polynomial of t = 1 / (1 + 0.4 a),
/// off by 5.7e-9 at most (tests/data/make_kernel_polynomials.py).
inline constexpr double kTailScale = 0.4;
template <class T>
[[gnu::always_inline]] inline Packet<T> scaled_tail(Packet<T> t) {
  static constexpr float kTail[] = {0.159570262F,   0.159775198F,  0.131491825F,   0.101644672F,
                                    -0.0670107752F, 0.221695185F,  -0.546660662F,  0.574155271F,
                                    -0.311563522F,  0.0864094272F, -0.00950689055F};
  return t * polynomial(t, kTail);
}
/// Phi(-|x|) and e^(-x^2 / 2).
template <class T>
struct NormalTail {
  Packet<T> below, power;
};
inline NormalTail<float> normal_tail(Packet<float> x) {
  using P = Packet<float>;
  const P power = exp_not_positive(x * x * P(-0.5F));
  return {power * scaled_tail(P(1.0F) / fma(P(static_cast<float>(kTailScale)), abs(x), P(1.0F))), power};
}
inline NormalTail<double> normal_tail(Packet<double> x) {
  using P = Packet<double>;
  return {P(0.5) * erfc(abs(x) * P(1 / std::numbers::sqrt2)), exp(x * x * P(-0.5))};
}

/// e^(-x^2) for x from 0 to 12. What x^2 loses when it is rounded is added to the exponential, so that the error does
/// not grow with x: exact with one rounding, else by splitting x into a short number and a rest.
inline Packet<float> exp_of_square(Packet<float> x) {
  using P = Packet<float>;
  if constexpr (kRoundsOnce) {
    const P square = x * x, rest = fma(x, x, -square), power = exp_not_positive(-square);
    return fma(-rest, power, power);
  } else {
    const P high = ((x + P(kWholeInLastBits / 64)) - P(kWholeInLastBits / 64));
    return exp_not_positive(-(high * high)) * exp((high - x) * (x + high));
  }
}
/// erfc(x) e^(x^2) for x >= 0.
template <class T>
[[gnu::always_inline]] inline Packet<T> scaled_erfc(Packet<T> x) {
  using P = Packet<T>;
  const P tail = scaled_tail(P(T(1)) / fma(P(T(kTailScale * std::numbers::sqrt2)), x, P(T(1))));
  return tail + tail;
}

/// erf(x) by the Maclaurin series, |x| < 0.9.
[[gnu::always_inline]] inline Packet<float> erf_near(Packet<float> x) {
  using P = Packet<float>;
  const P s = x * x;
  P p = -1.0F / 75600.0F;
  p = fma(p, s, 1.0F / 9360.0F);
  p = fma(p, s, -1.0F / 1320.0F);
  p = fma(p, s, 1.0F / 216.0F);
  p = fma(p, s, -1.0F / 42.0F);
  p = fma(p, s, 1.0F / 10.0F);
  p = fma(p, s, -1.0F / 3.0F);
  return x * fma(p * P(1.1283791671F), s, P(1.1283791671F));
}
inline Packet<float> erf(Packet<float> x) {
  using P = Packet<float>;
  const P size = first_min(abs(x), P(12.0F));  // a NaN stays, being the first operand
  const P far = copysign(P(1.0F) - exp_of_square(size) * scaled_erfc(size), x);
  return select(size < P(0.8F), erf_near(x), far);
}
/// The factor of the exponential in doubles: small differences of x weigh twice there.
inline Packet<float> erfc(Packet<float> x) {
  using P = Packet<float>;
  const P size = first_min(abs(x), P(12.0F));
  const P y = exp_of_square(size) * in_doubles([](Packet<double> v) { return scaled_erfc(v); }, size);
  const P far = select(x < P(0.0F), P(2.0F) - y, y);
  return select(abs(x) < P(0.5F), P(1.0F) - erf_near(x), far);
}

/// x Phi(x): no cancellation on the negative side, and 0 at its end. A NaN stays, being the first operand.
inline Packet<float> gelu(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_max(x, P(-40.0F));
  const P below = normal_tail(bounded).below;
  return bounded * select(bounded < P(0.0F), below, P(1.0F) - below);
}
/// x Phi(x) for x <= -36 by its asymptotic series, -phi(x) (1 - 1/x^2 + 3/x^4 - 15/x^6 + ...) (Abramowitz and Stegun,
/// 26.2.12): eight terms leave 1e-17. Phi(x) itself loses its digits from -37.5 on, where it is below the least normal
/// number, and the factor x would enlarge the error.
inline double gelu_far_below(double x) {
  const double square = x * x, lost = std::fma(x, x, -square), r = 1 / square;
  double series = 0;
  for (int odd = 13; odd > 0; odd -= 2) series = -r * odd * (1 + series);
  const double density = std::exp(-square / 2) * (1 - lost / 2);
  return -(density * (std::numbers::inv_sqrtpi / std::numbers::sqrt2) * (1 + series));
}
/// What -x / sqrt(2) loses when it is rounded is added to erfc by its slope: it weighs x^2 times there.
inline double gelu_number(double x) {
  constexpr double root = std::numbers::sqrt2 / 2, root_rest = -4.833646656726457e-17;
  if (x < -40) return -0.0;
  if (x < -36) return gelu_far_below(x);
  const double z = x * -root;
  double tail = std::erfc(z);
  if (z > 1) tail -= 2 * std::numbers::inv_sqrtpi * std::exp(-z * z) * (std::fma(-x, root, -z) - x * root_rest);
  return x * (0.5 * tail);
}
inline Packet<double> gelu(Packet<double> x) { return by_lane(x, gelu_number); }
/// Its derivative, Phi(x) + x phi(x).
template <class T>
Packet<T> gelu_slope(Packet<T> x) {
  using P = Packet<T>;
  const P bounded = min(max(x, P(T(-40))), P(T(40)));
  const NormalTail<T> tail = normal_tail(bounded);
  const P whole = select(bounded < P(T(0)), tail.below, P(T(1)) - tail.below);
  return whole + bounded * (P(T(std::numbers::inv_sqrtpi / std::numbers::sqrt2)) * tail.power);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
