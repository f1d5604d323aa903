#pragma once
/// Exponentials of packets of floats and doubles, and the functions made of one.
///
/// x = n ln(2) + r, |r| <= ln(2) / 2, and e^x = 2^n e^r by a polynomial of r (tests/data/make_kernel_polynomials.py).
/// Errors in ULP with a multiply-add that rounds once (AVX2; AVX-512 and NEON compute the same bits), and without one
/// (SSE2), over all numbers, including denormal operands and results. With it, exp and expm1 were tested on all floats;
/// exp2 on all floats from 1/8 to 16 in size, and on every 131st.
///
///   f32: exp 0.87 (0.9), exp2 0.90 (1.1), expm1 0.97 (1.2); tanh 3, softplus 3, sigmoid 2.7, above 4 0.6.
///   f64: exp 0.83 (0.84), exp2 0.85 (1.05), expm1 0.75 (0.75), sigmoid 0.8 (0.8); tanh, softplus 1.15 (1.15).
///
/// A sigmoid below the least normal number may be 0 in f32.
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Returns x 2^n for whole n from -252 to 254 (doubles: from -2046 to 2049), in two factors so that results reach the
/// denormals and the largest numbers.
[[gnu::always_inline]] inline Packet<float> scale(Packet<float> x, Packet<float> n) {
#if defined(FERRITE_WRITTEN)
  return scale_raw(x.raw, n.raw);
#elif defined(__AVX512F__)
  return _mm512_scalef_ps(x.raw, n.raw);  // this rounds as the last factor does
#else
  const Bits whole = to_bits(n), half = whole >> 1;
  return x * from_bits((half + bits(127)) << 23) * from_bits((whole - half + bits(127)) << 23);
#endif
}
[[gnu::always_inline]] inline Packet<double> scale(Packet<double> x, Packet<double> n) {
#if defined(FERRITE_WRITTEN)
  return scale_raw(x.raw, n.raw);
#elif defined(__AVX512F__)
  return _mm512_scalef_pd(x.raw, n.raw);
#else
  // Half of n + 2046 without a shift that keeps signs: both halves are exponents in their stored form.
  const Bits64 whole = bits_of(n + Packet<double>(kWholeInLastBits64 + 2046));
  const Bits64 half = (whole << 51) & bits64(0x7ff0000000000000);
  return x * from_bits(half) * from_bits((whole << 52) - half);
#endif
}

/// Returns x - n ln(2), with ln(2) in two parts.
[[gnu::always_inline]] inline Packet<float> less_powers(Packet<float> x, Packet<float> n) {
  return fma(n, Packet<float>(2.12194440e-4F), fma(n, Packet<float>(-0.693359375F), x));
}

/// The series e^r = 1 + r + r^2 low + r^4 high for |r| <= ln(2) / 2: off by at most 1.5e-8 of e^r - 1 (fitted at
/// Chebyshev's points by least squares, weighted repeatedly by the errors).
struct ExpSeries {
  Packet<float> squared, low, high;
};
[[gnu::always_inline]] inline ExpSeries exp_series(Packet<float> r) {
  using P = Packet<float>;
  const P squared = r * r;
  const P middle = fma(P(8.36604089e-3F), r, 4.16668542e-2F);
  return {squared, fma(P(1.66665494e-1F), r, 0.5F), fma(squared, P(1.38982246e-3F), middle)};
}
/// Returns e^r for |r| <= ln(2) / 2, rounded twice.
[[gnu::always_inline]] inline Packet<float> exp_reduced(Packet<float> r) {
  const ExpSeries s = exp_series(r);
  return fma(fma(s.squared, s.high, s.low), s.squared, r + 1.0F);
}

/// The parts of e^x = 2^n (1 + first + rest): `first` = x - n c, c being ln(2) to few digits, is exact, and `rest`
/// holds the remainder of n ln(2) as well as r^2 / 2 + r^3 E(r), off by 4e-10 of e^r - 1 (doubles: by 1e-18).
template <class T>
struct ExpParts {
  Packet<T> n, first, rest;
};
[[gnu::always_inline]] inline ExpParts<float> exp_parts(Packet<float> x) {
  using P = Packet<float>;
  const P n = fma(x, P(1.44269504088896341F), P(kWholeInLastBits)) - P(kWholeInLastBits);
  const P first = fma(n, P(-0.693359375F), x), second = n * P(2.12194440e-4F), r = first + second, z = r * r;
  const P low = fma(P(0.166666657F), r, 0.5F), middle = fma(P(0.00833342038F), r, 0.0416664816F);
  const P high = fma(P(0.00019824093F), r, 0.00139333331F);
  return {n, first, fma(z, fma(z, fma(z, high, middle), low), second)};
}
/// The parts of a reduced e^x: n; `first`, and `second`, the remainder of n ln(2); r, their sum (its rounding error
/// changes e^r - 1 - r by r times that error); r^2; and the factors of e^r = 1 + r + r^2 (1 / 2 + `odd` r + `even`
/// r^2). Even and odd powers are separate since the steps of a recurrence wait for the result.
struct ExpReduced {
  Packet<double> n, first, second, r, squared, odd, even;
};
[[gnu::always_inline]] inline ExpReduced exp_reduced_parts(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kOdd[] = {0.16666666666666669, 0.0083333333333300615, 0.00019841269863053618,
                                    2.7557268459997064e-06, 2.510038549551032e-08};
  static constexpr double kEven[] = {0.041666666666666664, 0.0013888888888886552, 2.4801587317144498e-05,
                                     2.7557282969549951e-07, 2.0911236630261545e-09};
  const P n = fma(x, P(std::numbers::log2e), P(kWholeInLastBits64)) - P(kWholeInLastBits64);
  const P first = fma(n, P(-0.69314718036912382), x), second = n * P(-1.9082149292705877e-10);
  const P r = first + second, z = r * r, lost = (first - r) + second;
  return {n, first, fma(r, lost, second), r, z, polynomial(z, kOdd), polynomial(z, kEven)};
}
[[gnu::always_inline]] inline ExpParts<double> exp_parts(Packet<double> x) {
  const ExpReduced e = exp_reduced_parts(x);
  return {e.n, e.first, fma(e.squared, fma(e.r, e.odd, fma(e.squared, e.even, 0.5)), e.second)};
}

/// The ends of the range: e^x is 0 from `least` down and infinite from `most` on; 2^x from `least2` and `most2`.
template <class T>
struct ExpEnds;
template <>
struct ExpEnds<float> {
  static constexpr float least = -104.0F, most = 89.0F, least2 = -151.0F, most2 = 129.0F;
};
template <>
struct ExpEnds<double> {
  static constexpr double least = -746.0, most = 710.0, least2 = -1076.0, most2 = 1025.0;
};

/// Returns e^x. The bounds keep a NaN, which is the first operand; beyond them e^x is 0 or infinite.
template <class T>
Packet<T> exp(Packet<T> x) {
  using P = Packet<T>;
  const ExpParts<T> e = exp_parts(first_min(first_max(x, P(ExpEnds<T>::least)), P(ExpEnds<T>::most)));
  return scale(P(T(1)) + (e.first + e.rest), e.n);
}

/// Returns 2^(x + rest), where rest is below the last digit of x: 2^r = 1 + r ln(2) + r^2 Q(r) for |r| <= 1/2.
[[gnu::always_inline]] inline Packet<float> exp2_of(Packet<float> x, Packet<float> rest) {
  using P = Packet<float>;
  static constexpr float kSeries[] = {0.240226492F, 0.0555036999F, 0.00961825252F, 0.00133866479F, 0.000153964676F};
  const P n = (x + P(kWholeInLastBits)) - P(kWholeInLastBits), first = x - n, r = first + rest;
  const P low = fma(r * r, polynomial(r, kSeries), fma(rest, P(0.693147182F), r * P(-1.90465421e-9F)));
  return scale(P(1.0F) + fma(first, P(0.693147182F), low), n);
}
[[gnu::always_inline]] inline Packet<double> exp2_of(Packet<double> x, Packet<double> rest) {
  using P = Packet<double>;
  static constexpr double kEven[] = {0.24022650695910072,    0.0096181291076284786,  0.00015403530393375911,
                                     1.3215486802905462e-06, 7.0548999554389264e-09, 2.5725082444272935e-11};
  static constexpr double kOdd[] = {0.055504108664821597, 0.0013333558146416933, 1.5252733829839213e-05,
                                    1.0178062443959398e-07, 4.454960975460706e-10};
  const P n = (x + P(kWholeInLastBits64)) - P(kWholeInLastBits64), first = x - n, r = first + rest, z = r * r;
  const P series = fma(r, polynomial(z, kOdd), polynomial(z, kEven));
  const P low = fma(z, series, fma(rest, P(std::numbers::ln2), r * P(2.3190468138462996e-17)));
  return scale(P(1.0) + fma(first, P(std::numbers::ln2), low), n);
}
template <class T>
Packet<T> exp2(Packet<T> x) {
  using P = Packet<T>;
  return exp2_of(first_min(first_max(x, P(ExpEnds<T>::least2)), P(ExpEnds<T>::most2)), P(T(0)));
}

/// Returns e^x - 1 = 2 (2^(n-1) - 1/2 + 2^(n-1) first + 2^(n-1) rest), where everything but the rest is exact. Near 0
/// it is x, so -0 stays.
inline Packet<float> expm1(Packet<float> x) {
  using P = Packet<float>;
  const ExpParts<float> e = exp_parts(first_min(first_max(x, P(-18.0F)), P(ExpEnds<float>::most)));
  const P power = power_of_two(e.n - P(1.0F)), less = power - P(0.5F);
  const P high = fma(power, e.first, less), low = fma(power, e.first, less - high);
  const P lost = (power - less) - P(0.5F);  // from 2^24 on
  const P half = high + (fma(power, e.rest, low) + lost);
  return select(abs(x) < P(0x1p-25F), x, half + half);
}
/// Returns e^x - 1; r^2 / 2 is carried exactly, too.
inline Packet<double> expm1(Packet<double> x) {
  using P = Packet<double>;
  const ExpReduced e = exp_reduced_parts(first_min(first_max(x, P(-38.0)), P(ExpEnds<double>::most)));
  const P power = power_of_two(e.n - P(1.0)), less = power - P(0.5), z = e.squared;
  const P high = fma(power, e.first, less), low = fma(power, e.first, less - high);
  const P lost = (power - less) - P(0.5);  // from 2^53 on
  const P half_square = P(0.5) * power * z, sum = high + half_square;
  const P square_lost = P(0.5) * rest_of_product(e.r, e.r, z);
  const P tail = fma(z, fma(e.r, e.odd, z * e.even), square_lost + e.second);
  const P half = sum + (fma(power, tail, (high - sum) + half_square) + (low + lost));
  return select(abs(x) < P(0x1p-54), x, half + half);
}

/// The parts of e^x = 2^n + 2^n less_one.
struct Exponential {
  Packet<float> power;     ///< 2^n, exact
  Packet<float> less_one;  ///< e^r - 1, |r| <= ln(2) / 2
};
/// Returns e^(2 x), x from 0 to 44, or e^-x, |x| <= 88.37, by `times` = 2 or -1, with few dependent operations, since
/// the steps of a recurrence wait for it. Where multiply-adds round once, r takes one of them, and the remainder of n
/// ln(2), which matters only for large n, is added to the series' first term.
template <int times>
[[gnu::always_inline]] inline Exponential exponential(Packet<float> x) {
  using P = Packet<float>;
  const P shift(kWholeInLastBits);
  const P sum = fma(x, P(times * 1.44269504088896341F), shift);
  const P n = sum - shift;
  const P power = from_bits((bits_of(sum) << 23) + bits(127 << 23));
  const P whole = times < 0 ? -x : x + x;
  P r = 0.0F, first = 0.0F;
  if constexpr (kRoundsOnce) {
    r = fma(n, P(-0.693147182464599609F), whole);
    first = times < 0 ? fma(n, P(1.90465430e-9F), r) : r;
  } else {
    first = r = less_powers(whole, n);
  }
  const ExpSeries s = exp_series(r);
  return {power, fma(s.squared * s.squared, s.high, fma(s.squared, s.low, first))};
}

/// Returns tanh(x) = t / (t + 2) with t = e^(2|x|) - 1, which is exact to a rounding also near 0; 1 from 9.1 on. A NaN
/// stays, being the first operand of the bound. (A rational function would take 0.7 of the time, and be off by 2.6e-7.)
[[gnu::always_inline]] inline Packet<float> tanh(Packet<float> x) {
  using P = Packet<float>;
  const Exponential e = exponential<2>(first_min(abs(x), P(9.1F)));
  const P t = fma(e.power, e.less_one, e.power - P(1.0F));
  const P y = t / (t + P(2.0F));
  return or_raw(y.raw, and_raw(x.raw, P(-0.0F).raw));
}

/// Returns 1 / (1 + e^-x), and 1 - e^-x / (1 + e^-x) above 4: near 1 the sum has fewer digits than the result, and the
/// gate of a state that decays slowly would be off in the same direction at every step. 0 from -88.37 down, whatever
/// the exponential gives there. A NaN stays, being the first operand of the bound.
[[gnu::always_inline]] inline Packet<float> sigmoid(Packet<float> x) {
  using P = Packet<float>;
  const P one(1.0F);
  const Exponential e = exponential<-1>(first_min(x, P(88.0F)));
  const Mask<float> not_zero = greater_or_nan(x, P(-88.37F));
  const P y = or_zero(not_zero, one / fma(e.power, e.less_one, e.power + one));
  return select(x > P(4.0F), fma(-fma(e.power, e.less_one, e.power), y, one), y);
}

/// The parts of e^-|x| = 2^n (high + low), the low part being the rounding error of the high one.
struct FallingExp {
  Packet<double> n, high, low;
  /// Returns 2^n, or 2^-1000 where that is smaller: next to 1, both are negligible.
  Packet<double> power() const { return power_of_two(first_max(n, Packet<double>(-1000.0))); }
};
[[gnu::always_inline]] inline FallingExp falling_exp(Packet<double> x) {
  using P = Packet<double>;
  const ExpParts<double> e = exp_parts(first_max(-abs(x), P(ExpEnds<double>::least)));
  const P high = P(1.0) + (e.first + e.rest);
  return {e.n, high, ((P(1.0) - high) + e.first) + e.rest};
}
/// A quotient and its rounding error.
struct Quotient {
  Packet<double> high, low;
};
[[gnu::always_inline]] inline Quotient quotient(Packet<double> a, Packet<double> a_low, Packet<double> b,
                                                Packet<double> b_low) {
  using P = Packet<double>;
  const P inverse = P(1.0) / b, q = a * inverse, product = q * b;
  const P left = (a - product) - rest_of_product(q, b, product);
  return {q, inverse * (left + (a_low - q * b_low))};
}

/// Returns 1 - 2 / (e^(2 |x|) + 1) from 0.625 on, below |x| + |x|^3 P(x^2) / Q(x^2), with the sign of x: one division
/// serves both. 1 from 20 on.
inline Packet<double> tanh(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kAbove[] = {-1614.0662099613849, -99.257628993836036, -0.96438740014558189};
  static constexpr double kBelow[] = {4842.1986298841548, 2234.652338935151, 112.77908150809851, 1.0};
  const P size = first_min(abs(x), P(20.0)), z = size * size, one(1.0);
  const ExpParts<double> e = exp_parts(size + size);
  const P power = power_of_two(e.n);
  const Mask<double> near = size < P(0.625);
  const P above = select(near, (size * z) * polynomial(z, kAbove), P(-2.0));
  const P below = select(near, polynomial(z, kBelow), fma(power, e.first + e.rest, power + one));
  const P y = select(near, size, one) + above / below;
  return or_raw(y.raw, and_raw(x.raw, P(-0.0).raw));
}

/// Returns 1 / (1 + t), t = e^-|x|, or t / (1 + t) for negative x, corrected for the rounding of 1 + t and the
/// quotient.
inline Packet<double> sigmoid(Packet<double> x) {
  using P = Packet<double>;
  const P one(1.0), zero(0.0);
  const FallingExp t = falling_exp(x);
  const P power = t.power(), high = t.high * power, sum = one + high;
  const Mask<double> rises = zero <= x;
  const P above = select(rises, one, t.high), above_low = or_zero(x < zero, t.low);
  const Quotient q = quotient(above, above_low, sum, fma(t.low, power, (one - sum) + high));
  return scale(q.high + q.low, or_zero(x < zero, t.n));
}

/// Returns x sigmoid(x). Far below 0, where the sigmoid underflows before its product with x does, it is x e^x, in two
/// factors since e^x may be denormal. Off by 4 ULP (f64: 4).
template <class T>
Packet<T> silu(Packet<T> x) {
  using P = Packet<T>;
  const P y = x * sigmoid(x);
  const Mask<T> far = x < P(T(sizeof(T) == 4 ? -80 : -700));
  if (!any(far)) [[likely]]
    return y;
  const P half = exp(x * P(T(0.5)));
  return select(far, (x * half) * half, y);
}

/// Returns e^x for x <= 0; 0 from -104 on. A NaN stays, being the first operand.
[[gnu::always_inline]] inline Packet<float> exp_not_positive(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_max(x, P(-104.0F));
  const P n = fma(bounded, P(1.44269504088896341F), P(kWholeInLastBits)) - P(kWholeInLastBits);
  return scale(exp_reduced(less_powers(bounded, n)), n);
}
/// Returns ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|; ln(1 + t) = 2 artanh(s), s = t / (2 + t).
inline Packet<float> softplus(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kSeries[] = {0.666666746F, 0.39998889F, 0.286165982F, 0.214307398F, 0.242895618F};
  const P t = exp_not_positive(-abs(x)), s = t / (t + P(2.0F)), z = s * s;
  return max(x, P(0.0F)) + fma(s * z, polynomial(z, kSeries), s + s);
}
/// Returns ln(1 + e^x), with s corrected for the rounding of t and of the division.
inline Packet<double> softplus(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kEven[] = {0.66666666666666663, 0.28571428567105062, 0.18181789417326447, 0.13314135550881162,
                                     0.088003176508687733};
  static constexpr double kOdd[] = {0.40000000000014596, 0.22222222717801782, 0.15385570592912243, 0.12001155182857778,
                                    0.16164938169471338};
  const FallingExp t = falling_exp(x);
  const P two(2.0), power = t.power(), high = t.high * power, low = t.low * power, sum = two + high;
  const Quotient s = quotient(t.high, t.low, sum, ((two - sum) + high) + low);
  const P z = (s.high * s.high) * (power * power), w = z * z;
  const P series = fma(z, polynomial(w, kOdd), polynomial(w, kEven));
  const P y = scale((s.high + s.high) + fma(s.high * z, series, s.low + s.low), t.n);
  return max(x, P(0.0)) + y;
}

}  // namespace ferrite::detail::FERRITE_LEVEL
