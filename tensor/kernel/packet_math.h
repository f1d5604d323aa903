#pragma once
/// Further functions of packets: the error function, inverse trigonometric, hyperbolic and special functions.
///
/// Errors in ULP of f32 over the whole range unless said (tests/ranges, on every instruction set): asin, sinc 2.5,
/// acos, atan, atan2, sinh, cosh 2, asinh, acosh, lgamma and trigamma of positive numbers 1, atanh 3, erfinv 3.1. f64:
/// the C library's lane by lane, but sinc, digamma and trigamma. All as measured: docs/numerics.md. Polynomials were
/// fitted by tests/data/make_kernel_polynomials.py.
#include "ferrite/tensor/kernel/packet_bits.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_trigonometry.h"
#include "ferrite/tensor/kernel/special.h"

namespace ferrite::detail::FERRITE_LEVEL {

// ---- the error function, and functions of it ----------------------------------------------------------------
// Errors in ULP over the whole range (tests/ranges, on every instruction set); in f32, erf, erfc 4, gelu 6, below 0 6 +
// 1.3 x^2; in f64, by the C library lane by lane, gelu 6.

/// Scale of t in Phi(-a) e^(a^2 / 2) for a >= 0, Phi the normal distribution function: t times a polynomial of t = 1 /
/// (1 + 0.4 a), off by at most 5.7e-9 (tests/data/make_kernel_polynomials.py).
inline constexpr double kTailScale = 0.4;
template <class T>
[[gnu::always_inline]] inline Packet<T> scaled_tail(Packet<T> t) {
  static constexpr float kTail[] = {0.159570262F,   0.159775198F,  0.131491825F,   0.101644672F,
                                    -0.0670107752F, 0.221695185F,  -0.546660662F,  0.574155271F,
                                    -0.311563522F,  0.0864094272F, -0.00950689055F};
  return t * polynomial(t, kTail);
}
/// The values Phi(-|x|) and e^(-x^2 / 2).
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

/// Returns e^(-x^2) for x from 0 to 12. The rounding error of x^2 is added to the exponential, so that the error does
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
/// Returns erfc(x) e^(x^2) for x >= 0.
template <class T>
[[gnu::always_inline]] inline Packet<T> scaled_erfc(Packet<T> x) {
  using P = Packet<T>;
  const P tail = scaled_tail(P(T(1)) / fma(P(T(kTailScale * std::numbers::sqrt2)), x, P(T(1))));
  return tail + tail;
}

/// Returns erf(x) by the Maclaurin series, |x| < 0.9.
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
/// Returns erfc(x). The factor of the exponential is computed in doubles, since small differences of x count twice
/// there.
inline Packet<float> erfc(Packet<float> x) {
  using P = Packet<float>;
  const P size = first_min(abs(x), P(12.0F));
  const P y = exp_of_square(size) * in_doubles([](Packet<double> v) { return scaled_erfc(v); }, size);
  const P far = select(x < P(0.0F), P(2.0F) - y, y);
  return select(abs(x) < P(0.5F), P(1.0F) - erf_near(x), far);
}

/// Returns x Phi(x): no cancellation on the negative side, and 0 at its end. A NaN stays, being the first operand.
inline Packet<float> gelu(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_max(x, P(-40.0F));
  const P below = normal_tail(bounded).below;
  return bounded * select(bounded < P(0.0F), below, P(1.0F) - below);
}
/// Returns x Phi(x) for x <= -36 by its asymptotic series, -phi(x) (1 - 1/x^2 + 3/x^4 - 15/x^6 + ...) (Abramowitz and
/// Stegun, 26.2.12): eight terms leave 1e-17. Phi(x) itself loses its digits from -37.5 on, where it is below the least
/// normal number, and the factor x would enlarge the error.
inline double gelu_far_below(double x) {
  const double square = x * x, lost = std::fma(x, x, -square), r = 1 / square;
  double series = 0;
  for (int odd = 13; odd > 0; odd -= 2) series = -r * odd * (1 + series);
  const double density = std::exp(-square / 2) * (1 - lost / 2);
  return -(density * (std::numbers::inv_sqrtpi / std::numbers::sqrt2) * (1 + series));
}
/// Returns x Phi(x). The rounding error of -x / sqrt(2) is added to erfc by its slope, since it counts x^2 times there.
inline double gelu_number(double x) {
  constexpr double root = std::numbers::sqrt2 / 2, root_rest = -4.833646656726457e-17;
  if (x < -40) return -0.0;
  if (x < -36) return gelu_far_below(x);
  const double z = x * -root;
  double tail = std::erfc(z);
  if (z > 1) tail -= 2 * std::numbers::inv_sqrtpi * std::exp(-z * z) * (std::fma(-x, root, -z) - x * root_rest);
  return x * (0.5 * tail);
}
struct GeluNumber {
  static constexpr const char* c_name = "gelu";
  double operator()(double x) const { return gelu_number(x); }
};
inline Packet<double> gelu(Packet<double> x) { return by_lane(x, GeluNumber()); }
/// Returns the derivative of gelu, Phi(x) + x phi(x).
template <class T>
Packet<T> gelu_slope(Packet<T> x) {
  using P = Packet<T>;
  const P bounded = min(max(x, P(T(-40))), P(T(40)));
  const NormalTail<T> tail = normal_tail(bounded);
  const P whole = select(bounded < P(T(0)), tail.below, P(T(1)) - tail.below);
  return whole + bounded * (P(T(std::numbers::inv_sqrtpi / std::numbers::sqrt2)) * tail.power);
}

// ---- inverse trigonometric, hyperbolic and special functions ----------------------------------------------

// ---- f64: the C library --------------------------------------------------------------------------------

#define FERRITE_BY_LANE(name, Name)   \
  FERRITE_NUMBER_FUNCTION(Name, name) \
  inline Packet<double> name(Packet<double> x) { return by_lane(x, Name()); }
FERRITE_BY_LANE(asin, AsinNumber)
FERRITE_BY_LANE(acos, AcosNumber)
FERRITE_BY_LANE(atan, AtanNumber)
FERRITE_BY_LANE(sinh, SinhNumber)
FERRITE_BY_LANE(cosh, CoshNumber)
FERRITE_BY_LANE(asinh, AsinhNumber)
FERRITE_BY_LANE(acosh, AcoshNumber)
FERRITE_BY_LANE(atanh, AtanhNumber)
#undef FERRITE_BY_LANE
FERRITE_NUMBER_FUNCTION(Atan2Number, atan2)
FERRITE_NUMBER_FUNCTION(HypotNumber, hypot)
inline Packet<double> atan2(Packet<double> y, Packet<double> x) { return by_lane(y, x, Atan2Number()); }
inline Packet<double> hypot(Packet<double> a, Packet<double> b) { return by_lane(a, b, HypotNumber()); }
/// ln |Gamma(x)| in doubles, rounded to the type of x.
struct LogGammaNumber {
  static constexpr const char* c_name = "lgamma";
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(log_gamma_of(static_cast<double>(x)));
  }
};
inline Packet<double> erfinv(Packet<double> x) {
  return by_lane(x, [](double v) { return erfinv_of(v, 3); });
}
inline Packet<double> lgamma(Packet<double> x) { return by_lane(x, LogGammaNumber()); }

// ---- f32: angles ---------------------------------------------------------------------------------------

/// Half of pi as a float, and its rounding error.
inline constexpr float kHalfPi = 1.57079637F, kHalfPiRest = -4.37113883e-8F;

/// Returns asin(s) = s + s z A(z), z = s^2, s up to 1 / 2.
[[gnu::always_inline]] inline Packet<float> asin_reduced(Packet<float> s, Packet<float> z) {
  static constexpr float kAsin[] = {0.166666597F,  0.0750050396F, 0.0445169546F,
                                    0.0318077169F, 0.014438604F,  0.0375164524F};
  return fma(s * z, polynomial(z, kAsin), s);
}
/// Returns asin(x); above 1/2 it is pi / 2 - 2 asin(sqrt((1 - x) / 2)).
inline Packet<float> asin(Packet<float> x) {
  using P = Packet<float>;
  const P size = abs(x);
  const Mask<float> steep = P(0.5F) < size;
  const P z = select(steep, fma(size, P(-0.5F), P(0.5F)), x * x);
  const P y = asin_reduced(select(steep, sqrt(z), size), z);
  return copysign(select(steep, P(kHalfPi) - (y + y - P(kHalfPiRest)), y), x);
}
inline Packet<float> acos(Packet<float> x) {
  using P = Packet<float>;
  const P size = abs(x);
  const Mask<float> steep = P(0.5F) < size;
  const P z = select(steep, fma(size, P(-0.5F), P(0.5F)), x * x);
  const P y = asin_reduced(select(steep, sqrt(z), x), z);
  const P left = P(2 * kHalfPi) - (y + y - P(2 * kHalfPiRest));
  return select(steep, select(x < P(0.0F), left, y + y), P(kHalfPi) - (y - P(kHalfPiRest)));
}

/// Returns atan(q) = q + q z B(z), z = q^2, q from 0 to 1.
[[gnu::always_inline]] inline Packet<float> atan_reduced(Packet<float> q) {
  static constexpr float kAtan[] = {-0.333332986F, 0.199985489F,   -0.142642409F, 0.109521814F,   -0.0840343684F,
                                    0.0579573587F, -0.0311776139F, 0.0109144812F, -0.00179359387F};
  const Packet<float> z = q * q;
  return fma(q * z, polynomial(z, kAtan), q);
}
inline Packet<float> atan(Packet<float> x) {
  using P = Packet<float>;
  const P size = abs(x);
  const Mask<float> steep = P(1.0F) < size;
  const P y = atan_reduced(select(steep, P(1.0F) / size, size));
  return copysign(select(steep, P(kHalfPi) - (y - P(kHalfPiRest)), y), x);
}
/// Returns the angle from the quotient of the smaller and the larger of the sizes; 1 for two infinities, 0 for two
/// zeros.
inline Packet<float> atan2(Packet<float> y, Packet<float> x) {
  using P = Packet<float>;
  const P a = abs(y), b = abs(x), zero(0.0F), infinity(std::numeric_limits<float>::infinity());
  const Mask<float> steep = b < a, left = copysign(P(1.0F), x) < zero;
  const P small = select(steep, b, a), large = select(steep, a, b);
  const P quotient =
      select((small == infinity) & (large == infinity), P(1.0F), select(large == zero, small, small / large));
  const P angle = atan_reduced(quotient);
  // From the nearer axis: 0, pi / 2 or pi, plus or minus the angle.
  const P axis = select(steep, P(kHalfPi), or_zero(left, P(2 * kHalfPi)));
  const P rest = select(steep, P(kHalfPiRest), or_zero(left, P(2 * kHalfPiRest)));
  const P turned = select(steep, select(left, angle, -angle), select(left, -angle, angle));
  return copysign(axis + (turned + rest), y);
}
/// Returns sqrt(x^2 + y^2) with one root; operands far from 1 are scaled by powers of two, so that squares neither
/// overflow nor vanish.
inline Packet<float> hypot(Packet<float> x, Packet<float> y) {
  using P = Packet<float>;
  const P a = abs(x), b = abs(y), infinity(std::numeric_limits<float>::infinity());
  const P large = select(a < b, b, a);
  const Mask<float> huge = P(0x1p60F) < large, tiny = large < P(0x1p-60F);
  const P down = select(huge, P(0x1p-80F), select(tiny, P(0x1p80F), P(1.0F)));
  const P up = select(huge, P(0x1p80F), select(tiny, P(0x1p-80F), P(1.0F)));
  const P p = a * down, q = b * down;
  return select((a == infinity) | (b == infinity), infinity, sqrt(fma(p, p, q * q)) * up);
}

/// Returns sin(pi x) / (pi x), from the distance r of x to the nearest whole number: sin(pi r) = pi r (1 + r^2 S(r^2)).
inline Packet<float> sinc(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kSine[] = {-1.64493406F, 0.811742187F, -0.190747961F, 0.0261175465F, -0.00223714951F};
  const P n = nearest(x), r = x - n, half = n * P(0.5F), z = r * r;
  const P y = fma(r * z, polynomial(z, kSine), r) / x;
  const P signed_y = select(nearest(half) == half, y, -y);
  return select(n == P(0.0F), fma(z, polynomial(z, kSine), P(1.0F)), signed_y);
}
inline Packet<double> sinc(Packet<double> x) {
  using P = Packet<double>;
  const P pi(std::numbers::pi), n = nearest(x), r = x - n, half = n * P(0.5), y = sin(pi * r) / (pi * x);
  return select(x == P(0.0), P(1.0), select(nearest(half) == half, y, -y));
}

// ---- f32: hyperbolic functions and logarithms ----------------------------------------------------------

/// Returns e^x / 2 for x >= 0; infinite where twice that is far beyond floats. NaN stays.
inline Packet<float> half_exp(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_min(x, P(91.0F));
  const P n = nearest(bounded * P(1.44269504088896341F));
  return select(is_nan(x), x, scale(exp_reduced(less_powers(bounded, n)), n - P(1.0F)));
}
inline Packet<float> sinh(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kSinh[] = {0.166666672F, 0.0083333496F, 0.000198361595F, 2.81695134e-06F};
  const P size = abs(x), z = x * x, e = half_exp(size);
  const P near = fma(size * z, polynomial(z, kSinh), size);
  return copysign(select(size < P(1.0F), near, e - P(0.25F) / e), x);
}
inline Packet<float> cosh(Packet<float> x) {
  using P = Packet<float>;
  const P e = half_exp(abs(x));
  return e + P(0.25F) / e;
}

inline Packet<float> asinh(Packet<float> x) {
  using P = Packet<float>;
  const P size = abs(x);
  const P y =
      in_doubles([](Packet<double> a) { return log_of_normal(a + sqrt(fma(a, a, Packet<double>(1.0)))); }, size);
  return copysign(select(size < P(1e-3F), fma(size * size, size * P(-1.0F / 6), size), y), x);
}
inline Packet<float> acosh(Packet<float> x) {
  using P = Packet<float>;
  const P y = in_doubles([](Packet<double> a) { return log_of_normal(a + sqrt(fma(a, a, Packet<double>(-1.0)))); }, x);
  return select(P(1.0F) <= x, y, P(std::numeric_limits<float>::quiet_NaN()));
}

/// Returns ln(a / b) / 2 of positive operands whose difference, divided by their sum, is u: by atanh's series for |u| <
/// 1/2.
inline Packet<float> half_log_ratio(Packet<float> u, Packet<float> a, Packet<float> b) {
  using P = Packet<float>;
  static constexpr float kAtanh[] = {0.333333373F, 0.199997276F,  0.142948523F, 0.109671824F,
                                     0.102826849F, 0.0245220661F, 0.175942361F};
  const P z = u * u;
  return select(abs(u) < P(0.5F), fma(u * z, polynomial(z, kAtanh), u), P(0.5F) * log_of_normal(a / b));
}
inline Packet<float> atanh(Packet<float> x) {
  using P = Packet<float>;
  const P size = abs(x), one(1.0F);
  const P y = half_log_ratio(size, one + size, one - size);
  const P end =
      select(size == one, P(std::numeric_limits<float>::infinity()), P(std::numeric_limits<float>::quiet_NaN()));
  return copysign(select(size < one, y, end), x);
}

// ---- special functions ---------------------------------------------------------------------------------

/// Returns the inverse of erf, infinite at -1 and 1, NaN outside: y E(w), w = -ln(1 - y^2), by two polynomials as in
/// Giles, "Approximating the erfinv function" (2010).
inline Packet<float> erfinv(Packet<float> y) {
  using P = Packet<float>;
  static constexpr float kNear[] = {1.50140941F,     0.24664028F,      -0.00417738687F,  -0.0012527419F,
                                    0.00021834443F,  -4.96334951e-06F, -3.46270417e-06F, 4.66171116e-07F,
                                    2.32325945e-08F, -8.7910923e-09F};
  static constexpr float kFar[] = {2.83297682F,     1.00167501F,  0.00944549683F,   -0.00763820112F,  0.00568504166F,
                                   -0.00359301106F, 0.001490411F, -6.51166192e-05F, -0.000313997385F, 0.000121326091F};
  const P size = abs(y), one(1.0F);
  const P w = -log_of_normal((one - size) * (one + size));
  const P near = polynomial(w - P(2.5F), kNear), far = polynomial(sqrt(w) - P(3.0F), kFar);
  const P end = select(size == one, copysign(P(std::numeric_limits<float>::infinity()), y),
                       P(std::numeric_limits<float>::quiet_NaN()));
  return select(size < one, y * select(w < P(5.0F), near, far), end);
}

/// Returns ln Gamma(x) for x > 0: Stirling's series from 9 on, minus the logarithm of the product of the steps up to
/// there.
inline Packet<double> log_gamma_positive(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                       1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  P y = x, product = 1.0;
  for (int step = 0; step < 9; ++step) {
    const Mask<double> below = y < P(9.0);
    product = select(below, product * y, product);
    y = y + or_zero(below, P(1.0));
  }
  // One logarithm: of x, or of the product; then that of y, from 9 to 10, is a series about 9.5.
  static constexpr double kLog[] = {2.2512917986064953, 1.0,     -1.0 / 2, 1.0 / 3, -1.0 / 4,  1.0 / 5,
                                    -1.0 / 6,           1.0 / 7, -1.0 / 8, 1.0 / 9, -1.0 / 10, 1.0 / 11,
                                    -1.0 / 12};
  const Mask<double> raised = x < P(9.0);
  const P far = log_of_normal(select(raised, product, x));
  const P log_y = select(raised, polynomial((y - P(9.5)) * P(1 / 9.5), kLog), far);
  const P inverse = P(1.0) / y;
  const P tail = fma(inverse, polynomial(inverse * inverse, kSeries), P(0.91893853320467274178));  // ln(2 pi) / 2
  return fma(y - P(0.5), log_y, tail - y) - or_zero(raised, far);
}
inline Packet<float> lgamma(Packet<float> x) {
  using P = Packet<float>;
  const P infinity(std::numeric_limits<float>::infinity());
  const P y = in_doubles([](Packet<double> v) { return log_gamma_positive(v); }, x);
  const P zeros = select((x == P(1.0F)) | (x == P(2.0F)), P(0.0F), y);
  return mended((P(0.0F) < x) & (x < infinity), zeros, x, LogGammaNumber());
}

/// Returns the derivative of ln Gamma for x > 0: the asymptotic series from 10 on, minus 1 / x of the steps up to
/// there, which are summed as one fraction.
inline Packet<double> digamma_positive(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                       1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  P y = x, above = 0.0, below = 1.0;
  for (int step = 0; step < 10; ++step) {
    const Mask<double> small = y < P(10.0);
    above = select(small, fma(above, y, below), above);
    below = select(small, below * y, below);
    y = y + or_zero(small, P(1.0));
  }
  const P inverse = P(1.0) / y, square = inverse * inverse;
  return log_of_normal(y) - fma(square, polynomial(square, kSeries), P(0.5) * inverse) - above / below;
}
/// Returns digamma from 1 to 2, where the terms of the series cancel near its zero: the distance from the zero, which
/// is given as a number and a rest, times a polynomial of x - 1.5 that is off by 3.4e-18.
inline Packet<double> digamma_middle(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kRatio[] = {
      0.95105587603183284,    -0.42362742128146058,    0.24054248424078697,    -0.14840492305388092,
      0.094988724452890388,   -0.06192213327548831,    0.040760833940846085,   -0.026975796659787055,
      0.017907248317313294,   -0.011908220105959716,   0.0079270217968681542,  -0.005279937255532708,
      0.0035181065638024722,  -0.0023454947397380833,  0.0015633696313653504,  -0.0010364584817312839,
      0.00069092557612829861, -0.00048595039220036254, 0.00032395945401345196, -0.00014480643368061614,
      9.6536462614100617e-05, -0.00017821885488559231, 0.00011881232908510335};
  return (x - P(1.4616321449683622) - P(9.5499954299656974e-17)) * polynomial(x - P(1.5), kRatio);
}
inline Packet<double> digamma(Packet<double> x) {
  using P = Packet<double>;
  P y = digamma_positive(x);
  const Mask<double> middle = x <= P(2.0);
  if (any(middle)) {
    const Mask<double> low = x < P(1.0);
    y = select(middle, digamma_middle(x + or_zero(low, P(1.0))) - or_zero(low, P(1.0) / x), y);
  }
  return mended((P(1e-300) < x) & (x < P(1e300)), y, x, [](double v) { return digamma_of(v); });
}
inline Packet<float> digamma(Packet<float> x) {
  return in_doubles([](Packet<double> v) { return digamma(v); }, x);
}

/// Returns the second derivative of ln Gamma for x > 0, by the asymptotic series from 10 on.
inline Packet<double> trigamma_positive(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {1.0 / 6,  -1.0 / 30,     1.0 / 42, -1.0 / 30,
                                       5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
  const Mask<double> raised = x < P(10.0);
  const P first = or_zero(raised, P(1.0) / (x * x));  // nearly all of the result for small x
  P y = x + or_zero(raised, P(1.0)), above = 0.0, below = 1.0;
  for (int step = 0; step < 9; ++step) {
    const Mask<double> small = y < P(10.0);
    const P square = y * y;
    above = select(small, fma(above, square, below), above);
    below = select(small, below * square, below);
    y = y + or_zero(small, P(1.0));
  }
  const P inverse = P(1.0) / y, square = inverse * inverse;
  const P series = fma(square, polynomial(square, kSeries), fma(P(0.5), inverse, P(1.0)));
  return first + fma(series, inverse, above / below);
}
inline Packet<double> trigamma(Packet<double> x) {
  return mended((Packet<double>(1e-100) < x) & (x < Packet<double>(1e100)), trigamma_positive(x), x,
                [](double v) { return polygamma_of(1, v); });
}
inline Packet<float> trigamma(Packet<float> x) {
  return in_doubles([](Packet<double> v) { return trigamma(v); }, x);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
