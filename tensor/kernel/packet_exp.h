#pragma once
/// Exponentials of packets of floats, and the functions made of one.
///
/// x = n ln(2) + r, |r| <= ln(2) / 2, and e^x = 2^n e^r by a polynomial of r (tests/data/make_kernel_polynomials.py).
/// Errors in ULP with a multiply-add that rounds once (AVX2; AVX-512 and NEON compute the same bits), and without one
/// (SSE2), over all floats, denormal numbers in and out included. Tried with it: all for exp and expm1; for exp2 all
/// from 1/8 to 16 in size, and every 131st.
///
///   exp 0.87 (0.9), exp2 0.90 (1.1), expm1 0.97 (1.2); tanh 3, softplus 3, sigmoid 2.7, above 4 0.6.
///
/// A sigmoid below the least normal number may be 0.
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Added to a float below 2^22 in size, it leaves the nearest whole number in the last bits of the sum: 1.5 2^23.
inline constexpr float kWholeInLastBits = 12582912.0F;

/// x 2^n for whole n from -252 to 254, in two factors so that results reach the denormals and the largest floats.
[[gnu::always_inline]] inline Packet<float> scale(Packet<float> x, Packet<float> n) {
#ifdef __AVX512F__
  return _mm512_scalef_ps(x.raw, n.raw);  // which rounds as the last factor does
#else
  const Bits whole = to_bits(n), half = whole >> 1;
  return x * from_bits((half + bits(127)) << 23) * from_bits((whole - half + bits(127)) << 23);
#endif
}

/// x - n ln(2), ln(2) in two parts.
[[gnu::always_inline]] inline Packet<float> less_powers(Packet<float> x, Packet<float> n) {
  return fma(n, Packet<float>(2.12194440e-4F), fma(n, Packet<float>(-0.693359375F), x));
}

/// e^r = 1 + r + r^2 low + r^4 high for |r| <= ln(2) / 2: off by 1.5e-8 of e^r - 1 at most (a fit at Chebyshev's
/// points, least squares weighted by the errors again and again).
struct ExpSeries {
  Packet<float> squared, low, high;
};
[[gnu::always_inline]] inline ExpSeries exp_series(Packet<float> r) {
  using P = Packet<float>;
  const P squared = r * r;
  const P middle = fma(P(8.36604089e-3F), r, 4.16668542e-2F);
  return {squared, fma(P(1.66665494e-1F), r, 0.5F), fma(squared, P(1.38982246e-3F), middle)};
}
/// e^r there, rounded twice.
[[gnu::always_inline]] inline Packet<float> exp_reduced(Packet<float> r) {
  const ExpSeries s = exp_series(r);
  return fma(fma(s.squared, s.high, s.low), s.squared, r + 1.0F);
}

/// e^x = 2^n (1 + first + rest): `first` = x - n 0.693359375 is exact, and what that leaves of n ln(2) is in the rest
/// beside r^2 / 2 + r^3 E(r), off by 4e-10 of e^r - 1.
struct ExpParts {
  Packet<float> n, first, rest;
};
[[gnu::always_inline]] inline ExpParts exp_parts(Packet<float> x) {
  using P = Packet<float>;
  const P n = fma(x, P(1.44269504088896341F), P(kWholeInLastBits)) - P(kWholeInLastBits);
  const P first = fma(n, P(-0.693359375F), x), second = n * P(2.12194440e-4F), r = first + second, z = r * r;
  const P low = fma(P(0.166666657F), r, 0.5F), middle = fma(P(0.00833342038F), r, 0.0416664816F);
  const P high = fma(P(0.00019824093F), r, 0.00139333331F);
  return {n, first, fma(z, fma(z, fma(z, high, middle), low), second)};
}
/// Bounds keep a NaN, being the first operand; beyond them e^x is 0 or infinite.
inline Packet<float> exp(Packet<float> x) {
  using P = Packet<float>;
  const ExpParts e = exp_parts(first_min(first_max(x, P(-104.0F)), P(89.0F)));
  return scale(P(1.0F) + (e.first + e.rest), e.n);
}

/// 2^(x + rest), the rest being below the last digit of x: 2^r = 1 + r ln(2) + r^2 Q(r) for |r| <= 1/2.
[[gnu::always_inline]] inline Packet<float> exp2_of(Packet<float> x, Packet<float> rest) {
  using P = Packet<float>;
  static constexpr float kSeries[] = {0.240226492F, 0.0555036999F, 0.00961825252F, 0.00133866479F, 0.000153964676F};
  const P n = (x + P(kWholeInLastBits)) - P(kWholeInLastBits), first = x - n, r = first + rest;
  const P low = fma(r * r, polynomial(r, kSeries), fma(rest, P(0.693147182F), r * P(-1.90465421e-9F)));
  return scale(P(1.0F) + fma(first, P(0.693147182F), low), n);
}
inline Packet<float> exp2(Packet<float> x) {
  using P = Packet<float>;
  return exp2_of(first_min(first_max(x, P(-151.0F)), P(129.0F)), P(0.0F));
}

/// e^x - 1 = 2 (2^(n-1) - 1/2 + 2^(n-1) first + 2^(n-1) rest), of which all but the rest is carried exactly. Near 0 it
/// is x: so -0 stays.
inline Packet<float> expm1(Packet<float> x) {
  using P = Packet<float>;
  const ExpParts e = exp_parts(first_min(first_max(x, P(-18.0F)), P(89.0F)));
  const P power = from_bits((to_bits(e.n) + bits(126)) << 23), less = power - P(0.5F);
  const P high = fma(power, e.first, less), low = fma(power, e.first, less - high);
  const P lost = (power - less) - P(0.5F);  // from 2^24 on
  const P half = high + (fma(power, e.rest, low) + lost);
  return select(abs(x) < P(0x1p-25F), x, half + half);
}

/// e^x = 2^n + 2^n less_one.
struct Exponential {
  Packet<float> power;     ///< 2^n, exact
  Packet<float> less_one;  ///< e^r - 1, |r| <= ln(2) / 2
};
/// e^(2 x), x from 0 to 44, or e^-x, |x| <= 88.37, by `times` = 2 or -1, with few dependent operations: the steps of
/// a recurrence wait for it. Where a multiply-add rounds once, r takes one, and what that leaves of n ln(2), which
/// matters to large n alone, is added to the series' first term.
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

/// t / (t + 2) with t = e^(2|x|) - 1, which is exact to a rounding also near 0; 1 from 9.1 on. A NaN stays, being the
/// first operand of the bound. (A rational function would take 0.7 of the time, and be off by 2.6e-7.)
[[gnu::always_inline]] inline Packet<float> tanh(Packet<float> x) {
  using P = Packet<float>;
  const Exponential e = exponential<2>(first_min(abs(x), P(9.1F)));
  const P t = fma(e.power, e.less_one, e.power - P(1.0F));
  const P y = t / (t + P(2.0F));
  return or_raw(y.raw, and_raw(x.raw, P(-0.0F).raw));
}

/// 1 / (1 + e^-x), and 1 - e^-x / (1 + e^-x) above 4: near 1 the sum has fewer digits than the result, and the gate of
/// a state that decays slowly would be off in the same direction step after step. 0 from -88.37 down, whatever the
/// exponential gives there. A NaN stays, being the first operand of the bound.
[[gnu::always_inline]] inline Packet<float> sigmoid(Packet<float> x) {
  using P = Packet<float>;
  const P one(1.0F);
  const Exponential e = exponential<-1>(first_min(x, P(88.0F)));
  const Mask<float> not_zero = greater_or_nan(x, P(-88.37F));
  const P y = or_zero(not_zero, one / fma(e.power, e.less_one, e.power + one));
  return select(x > P(4.0F), fma(-fma(e.power, e.less_one, e.power), y, one), y);
}

/// x sigmoid(x): far below 0, where the sigmoid ends before its product with x does, x e^x, in two factors since e^x
/// may be denormal. Off by 4 ULP (f64: 4).
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

/// e^x for x <= 0: 0 from -104 on. A NaN stays, being the first operand.
[[gnu::always_inline]] inline Packet<float> exp_not_positive(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_max(x, P(-104.0F));
  const P n = fma(bounded, P(1.44269504088896341F), P(kWholeInLastBits)) - P(kWholeInLastBits);
  return scale(exp_reduced(less_powers(bounded, n)), n);
}
/// ln(1 + e^x) = max(x, 0) + ln(1 + t), t = e^-|x|; ln(1 + t) = 2 artanh(s), s = t / (2 + t).
inline Packet<float> softplus(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kSeries[] = {0.666666746F, 0.39998889F, 0.286165982F, 0.214307398F, 0.242895618F};
  const P t = exp_not_positive(-abs(x)), s = t / (t + P(2.0F)), z = s * s;
  return max(x, P(0.0F)) + fma(s * z, polynomial(z, kSeries), s + s);
}
inline Packet<double> softplus(Packet<double> x) { return max(x, Packet<double>(0.0)) + log1p(exp(-abs(x))); }

}  // namespace ferrite::detail::FERRITE_LEVEL
