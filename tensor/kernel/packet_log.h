#pragma once
/// Logarithms of packets of floats and doubles, and powers.
///
/// x = 2^n (1 + f), 1 + f from sqrt(1/2) to sqrt(2), and ln(x) = n ln(2) + f - f^2 / 2 + f^3 L(f), where the first sum
/// is carried exactly and L a polynomial (tests/data/make_kernel_polynomials.py); of doubles, one of s = f / (2 + f).
/// Errors in ULP with a multiply-add that rounds once (AVX2; AVX-512 and NEON compute the same bits), and without one
/// (SSE2), over all numbers, including denormal ones. With it, log1p was tested on all floats; the others on all floats
/// from 1/8 to 16, and on every 131st.
///
///   f32: log 0.86 (0.86), log2 0.98 (1.2), log10 0.88 (1), log1p 0.83 (0.9).
///   f64: log 0.84 (0.88), log2 0.95 (1.05), log10 0.91 (0.98), log1p 0.81 (0.86); log_of_normal 1.
#include "ferrite/tensor/kernel/packet_bits.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The constants of logarithms for one width. ln(2) and log10(2) are split into a part of few digits, whose products
/// with exponents are exact, and a rest; log2(e) and log10(e) into a rounded number and its error. Denormal numbers are
/// scaled by 2^lift.
template <class T>
struct LogNumbers;
template <>
struct LogNumbers<float> {
  static constexpr float ln2 = 0.693359375F, ln2_rest = -2.12194440e-4F, lift = 24.0F, lifting = 0x1p24F;
  static constexpr float log2e = 1.44269502F, log2e_rest = 1.92596303e-8F;
  static constexpr float log10e = 0.434294492F, log10e_rest = -1.010305e-8F;
  static constexpr float log10_2 = 0.301025391F, log10_2_rest = 4.60503898e-6F;
};
template <>
struct LogNumbers<double> {
  static constexpr double ln2 = 0.69314718036912382, ln2_rest = 1.9082149292705877e-10, lift = 54.0, lifting = 0x1p54;
  static constexpr double log2e = 1.4426950408889634, log2e_rest = 2.0355273740931033e-17;
  static constexpr double log10e = 0.43429448190325182, log10e_rest = 1.0983196502167651e-17;
  static constexpr double log10_2 = 0.30102999566361177, log10_2_rest = 3.6942390771589308e-13;
};

/// Returns ln(1 + f) - f = -f^2 / 2 + f^3 L(f) for 1 + f from sqrt(1/2) to sqrt(2).
[[gnu::always_inline]] inline Packet<float> log_less_first(Packet<float> f) {
  using P = Packet<float>;
  static constexpr float kLog[] = {0.333333135F,  -0.250000089F, 0.200021192F,  -0.166679963F, 0.142195508F,
                                   -0.124055915F, 0.118881747F,  -0.116756409F, 0.0674660131F};
  const P square = f * f;
  return fma(f * square, polynomial(f, kLog), square * P(-0.5F));
}
/// Coefficients of ln(1 + f) - f = -f^2 / 2 + s (f^2 / 2 + s^2 R(s^2)), s = f / (2 + f) (as in FreeBSD's e_log.c; R
/// interpolated at Chebyshev's points, off by 5e-18 of the whole).
inline constexpr double kLogRatio[] = {0.66666666666666696, 0.39999999999898889, 0.28571428626253836,
                                       0.22222211089379496, 0.18182892432536871, 0.15331611722055008,
                                       0.14617807153417325};
[[gnu::always_inline]] inline Packet<double> log_less_first(Packet<double> f) {
  using P = Packet<double>;
  const P s = f / (P(2.0) + f), z = s * s, half_square = P(0.5) * f * f;
  return fma(s, fma(z, polynomial(z, kLogRatio), half_square), -half_square);
}

/// The parts of x = 2^n (1 + f).
template <class T>
struct LogParts {
  Packet<T> n, f;
};
/// Returns the parts of x, which must be positive, finite and normal.
[[gnu::always_inline]] inline LogParts<float> log_parts(Packet<float> x) {
  const Bits n = (bits_of(x) - bits(0x3f3504f3)) >> 23;
  return {to_floats(n), from_bits(bits_of(x) - (n << 23)) - Packet<float>(1.0F)};
}
/// Returns exponents that begin at the root of 1/2, biased by 1023 so that an unsigned shift suffices; from_biased
/// converts them to doubles by way of 2^52.
[[gnu::always_inline]] inline Bits64 biased_exponent(Packet<double> x) {
  return (bits_of(x) + bits64(0x3ff0000000000000 - 0x3fe6a09e667f3bcd)) >> 52;
}
[[gnu::always_inline]] inline Packet<double> from_biased(Bits64 biased) {
  return from_bits(biased | bits64(0x4330000000000000)) - Packet<double>(0x1p52 + 1023);
}
[[gnu::always_inline]] inline LogParts<double> log_parts(Packet<double> x) {
  const Bits64 biased = biased_exponent(x);
  return {from_biased(biased), from_bits(bits_of(x) - ((biased - bits64(1023)) << 52)) - Packet<double>(1.0)};
}
/// Returns a + b + rest, a being 0 or the larger one; the rounding error of the first sum is added to the rest.
template <class T>
[[gnu::always_inline]] inline Packet<T> sum_of(Packet<T> a, Packet<T> b, Packet<T> rest) {
  const Packet<T> high = a + b;
  return high + (((a - high) + b) + rest);
}
template <class T>
[[gnu::always_inline]] inline Packet<T> log_of(LogParts<T> x) {
  using P = Packet<T>;
  using N = LogNumbers<T>;
  return sum_of(x.n * P(N::ln2), x.f, fma(x.n, P(N::ln2_rest), log_less_first(x.f)));
}
/// Returns ln(x) of positive, finite and normal x.
inline Packet<float> log_of_normal(Packet<float> x) { return log_of(log_parts(x)); }

/// Returns f of the parts of x; -infinity for 0, NaN for negative x.
template <class T, class F>
[[gnu::always_inline]] inline Packet<T> of_any_number(Packet<T> x, F f) {
  using P = Packet<T>;
  const P zero(T(0)), infinity(std::numeric_limits<T>::infinity());
  const Mask<T> small = x < P(std::numeric_limits<T>::min());
  if constexpr (sizeof(T) == 8)
    if (all((P(std::numeric_limits<T>::min()) <= x) & (x < infinity))) [[likely]]
      return f(log_parts(x));
  LogParts<T> parts = log_parts(select(small, x * P(LogNumbers<T>::lifting), x));
  parts.n = parts.n - or_zero(small, P(LogNumbers<T>::lift));
  const P edge = select(x < zero, P(std::numeric_limits<T>::quiet_NaN()), select(x == zero, -infinity, x));
  return select((zero < x) & (x < infinity), f(parts), edge);
}
template <class T>
Packet<T> log(Packet<T> x) {
  return of_any_number(x, log_of<T>);
}

/// The product f c of a constant in two numbers, c = high + low: rounded, and its error. Without a fused multiply-add
/// the product is one of halves of 12 digits (Dekker, "A floating-point technique", 1971).
template <class T>
struct Scaled {
  Packet<T> high, low;
};
[[gnu::always_inline]] inline Scaled<float> scaled_by(Packet<float> f, float high, float low) {
  using P = Packet<float>;
  const P product = f * P(high);
  if constexpr (kRoundsOnce) {
    return {product, fma(f, P(low), fma(f, P(high), -product))};
  } else {
    const float head = std::bit_cast<float>(std::bit_cast<std::uint32_t>(high) & 0xfffff000U);
    const P first = from_bits(bits_of(f) & bits(-4096)), second = f - first;
    return {product, ((first * P(head) - product) + second * P(head)) + f * P((high - head) + low)};
  }
}
[[gnu::always_inline]] inline Scaled<double> scaled_by(Packet<double> f, double high, double low) {
  const Packet<double> product = f * Packet<double>(high);
  return {product, fma(f, Packet<double>(low), rest_of_product(f, high, product))};
}
template <class T>
Packet<T> log2(Packet<T> x) {
  using P = Packet<T>;
  using N = LogNumbers<T>;
  return of_any_number(x, [](LogParts<T> v) {
    const Scaled<T> s = scaled_by(v.f, N::log2e, N::log2e_rest);
    // The rounding error of f^2 in log_less_first would cost half a digit at both ends of the range of f: it is added
    // here.
    const P square = v.f * v.f, low = fma(fma(v.f, v.f, -square), P(T(-0.5) * N::log2e), s.low);
    return sum_of(v.n, s.high, fma(log_less_first(v.f), P(N::log2e), low));
  });
}
template <class T>
Packet<T> log10(Packet<T> x) {
  using P = Packet<T>;
  using N = LogNumbers<T>;
  return of_any_number(x, [](LogParts<T> v) {
    const Scaled<T> s = scaled_by(v.f, N::log10e, N::log10e_rest);
    const P rest = fma(log_less_first(v.f), P(N::log10e), fma(v.n, P(N::log10_2_rest), s.low));
    return sum_of(v.n * P(N::log10_2), s.high, rest);
  });
}

/// The exponent n of a normal number, as by log_parts, and 2^(2 - n), which is normal for all.
template <class T>
struct Power {
  Packet<T> n, inverse;
};
[[gnu::always_inline]] inline Power<float> power_in(Packet<float> x) {
  const Bits n = (bits_of(x) - bits(0x3f3504f3)) >> 23;
  return {to_floats(n), from_bits((bits(129) - n) << 23)};
}
[[gnu::always_inline]] inline Power<double> power_in(Packet<double> x) {
  const Bits64 biased = biased_exponent(x);
  return {from_biased(biased), from_bits((bits64(2048) - biased) << 52)};
}
/// Returns ln(1 + x), with 1 + x = 2^n (1 + f + e): n of the rounded sum, f = x / 2^n + (1 / 2^n - 1) rounded, and e
/// its rounding error. x / 4 is scaled, so that the factor is a normal number for all x. Near 0 it is x, so -0 stays.
template <class T>
Packet<T> log1p(Packet<T> x) {
  using P = Packet<T>;
  using N = LogNumbers<T>;
  const P one(T(1)), quarter = x * P(T(0.25)), infinity(std::numeric_limits<T>::infinity());
  const Power<T> power = power_in(one + x);
  const P less = fma(power.inverse, P(T(0.25)), -one);
  const P f = fma(power.inverse, quarter, less), e = fma(power.inverse, quarter, less - f);
  const P rest = fma(power.n, P(N::ln2_rest), log_less_first(f) + fma(-e, f, e));
  const P y = sum_of(power.n * P(N::ln2), f, rest);
  const P edge = select(x < -one, P(std::numeric_limits<T>::quiet_NaN()), select(x == -one, -infinity, x));
  const Mask<T> usual = (-one < x) & (x < infinity) & (P(std::numeric_limits<T>::epsilon() / 4) < abs(x));
  return select(usual, y, edge);
}

/// Returns ln(x) in doubles; x is positive and normal, or infinite or NaN, which stay: n ln(2) + f - (f^2 / 2 - ...)
/// without the rounding errors of the sums.
inline Packet<double> log_of_normal(Packet<double> x) {
  using P = Packet<double>;
  const LogParts<double> v = log_parts(x);
  const P s = v.f / (P(2.0) + v.f), z = s * s, half_square = P(0.5) * v.f * v.f;
  const P less = half_square - fma(s, fma(z, polynomial(z, kLogRatio), half_square), v.n * P(1.9082149292705877e-10));
  return select(x < P(std::numeric_limits<double>::infinity()), fma(v.n, P(0.6931471803691238), v.f - less), x);
}

// ---- powers -----------------------------------------------------------------------------------------------
// 2^(y log2 |x|), with the logarithm and the product in twice the digits (floats in doubles, doubles in pairs of them),
// and with the special values of C99 (F.9.4.4). Floats are off by at most 1 ULP (SSE2, which has no multiply-add that
// rounds once: 1.2) in 10^8 pairs, including bases near 1 and results at the ends of floats (tests/ranges: every
// exponent of x by y of all sizes); doubles by 1.1 (1.2).

/// Returns y log2(x), of x = 2^n (1 + f) by s = f / (2 + f): log2(1 + f) = s (2 / ln(2) + s^2 L(s^2)), off by 2e-11 of
/// it. The quotient is one of floats, refined to doubles by a step of Newton's method: 1 / (2 + f) = (1 - s) / 2.
[[gnu::always_inline]] inline Doubles scaled_log2(LogParts<float> x, Packet<float> y) {
  using D = Packet<double>;
  static constexpr double kSeries[] = {2.8853900817779268, 0.96179669230114528, 0.57707977949931699,
                                       0.41190066747624626, 0.33660404494461788};
  const Doubles n = to_doubles(x.n), f = to_doubles(x.f), near = to_doubles(x.f / (Packet<float>(2.0F) + x.f));
  Doubles out = to_doubles(y);
  for (std::size_t i = 0; i < std::size(out.at); ++i) {
    const D q = near.at[i], left = fma(-q, D(2.0) + f.at[i], f.at[i]), s = fma(left, fma(q, D(-0.5), D(0.5)), q);
    out.at[i] = out.at[i] * fma(s, polynomial(s * s, kSeries), n.at[i]);
  }
  return out;
}

/// Returns |x|^y for finite x and y, x not 0: 2^w, w = y log2 |x|, by the series of exp2. w is a float and its rounding
/// error.
[[gnu::always_inline]] inline Packet<float> power_of_size(Packet<float> size, Packet<float> y) {
  using P = Packet<float>;
  using D = Packet<double>;
  const Mask<float> small = size < P(std::numeric_limits<float>::min());
  LogParts<float> parts = log_parts(select(small, size * P(0x1p24F), size));
  parts.n = parts.n - or_zero(small, P(24.0F));
  Doubles w = scaled_log2(parts, y);
  for (D& v : w.at) v = first_min(first_max(v, D(-151.0)), D(129.0));
  const P high = to_floats(w);
  const Doubles back = to_doubles(high);
  for (std::size_t i = 0; i < std::size(w.at); ++i) w.at[i] = w.at[i] - back.at[i];
  return exp2_of(high, to_floats(w));
}

/// Returns log2(x) of x = 2^n (1 + f) as the sum of two doubles, off by 2^-65 of it: s
/// (2 / ln(2) (1 + s^2 / 3) + s^4 L(s^2)), s = f / (2 + f), where all but L is carried in two doubles.
[[gnu::always_inline]] inline Quotient log2_in_two(LogParts<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {0.57707801635558531, 0.41219858311114388, 0.32059889796715468,
                                       0.26230819146815221, 0.2219527885851067,  0.19238056603036385,
                                       0.16888529114458137, 0.16912971664122153};
  const P two(2.0), sum = two + x.f, first(2.8853900817779268), second(0.96179669392597555);
  const Quotient s = quotient(x.f, P(0.0), sum, (two - sum) + x.f);
  const P z = s.high * s.high, z_low = fma(s.high + s.high, s.low, rest_of_product(s.high, s.high, z));
  const P more = z * polynomial(z, kSeries), third = second + more;
  const P third_low = ((second - third) + more) + P(5.0577616648125907e-17);
  const P part = z * third, part_low = rest_of_product(z, third, part) + fma(z, third_low, z_low * third);
  const P factor = first + part, factor_low = ((first - factor) + part) + (part_low + P(4.0710547481862066e-17));
  const P log = s.high * factor;
  const P log_low = rest_of_product(s.high, factor, log) + fma(s.high, factor_low, s.low * factor);
  const P high = x.n + log;
  return {high, ((x.n - high) + log) + log_low};
}
/// Returns |x|^y for doubles. Exponents beyond 2^66 in size have the same limits as 2^66.
[[gnu::always_inline]] inline Packet<double> power_of_size(Packet<double> size, Packet<double> y) {
  using P = Packet<double>;
  const Mask<double> small = size < P(std::numeric_limits<double>::min());
  LogParts<double> parts = log_parts(select(small, size * P(0x1p54), size));
  parts.n = parts.n - or_zero(small, P(54.0));
  const Quotient log = log2_in_two(parts);
  const P by = first_min(first_max(y, P(-0x1p66)), P(0x1p66)), w = by * log.high;
  const P bounded = first_min(first_max(w, P(-1076.0)), P(1025.0));
  return exp2_of(bounded, or_zero(bounded == w, rest_of_product(by, log.high, w) + by * log.low));
}

/// Masks of whole numbers, and the sign bit where they are odd.
template <class T>
struct Parity {
  Mask<T> whole;
  Packet<T> odd;
};
/// Returns the parity of y. Floats of 2^24 and more are even, so a bounded number has the same parity.
[[gnu::always_inline]] inline Parity<float> parity(Packet<float> y) {
  const Packet<float> bounded = first_min(abs(y), Packet<float>(0x1p24F));
  const Bits whole = to_bits(bounded);
  return {to_floats(whole) == bounded, from_bits(whole << 31)};
}
/// Returns the parity of y. Half of an odd number lies between two whole ones.
[[gnu::always_inline]] inline Parity<double> parity(Packet<double> y) {
  using P = Packet<double>;
  const P half = y * P(0.5);
  return {nearest(y) == y, or_zero(abs(half - nearest(half)) == P(0.5), P(-0.0))};
}

/// Returns the power where x or y is 0, infinite or NaN, or x is negative, as C99 (F.9.4.4) defines it.
template <class T>
[[gnu::always_inline]] inline Packet<T> power_at_edges(Packet<T> power, Packet<T> x, Packet<T> y) {
  using P = Packet<T>;
  const P zero(T(0)), one(T(1)), infinity(std::numeric_limits<T>::infinity()), size = abs(x);
  const Mask<T> grows = ((one < size) & (zero < y)) | ((size < one) & (y < zero));
  const P limit = select(size == one, one, or_zero(grows, infinity));
  const P finite = select((size == zero) | (size == infinity) | (abs(y) == infinity), limit, power);
  const Parity<T> kind = parity(y);
  const P sign = or_zero(kind.whole, P(and_raw(x.raw, kind.odd.raw)));
  const P with_sign = or_raw(finite.raw, sign.raw);
  const P real = select(kind.whole | (zero <= x) | (x == -infinity), with_sign, P(std::numeric_limits<T>::quiet_NaN()));
  return select((x == one) | (y == zero), one, select(is_nan(x) | is_nan(y), x + y, real));
}

template <class T>
Packet<T> pow(Packet<T> x, Packet<T> y) {
  using P = Packet<T>;
  const P zero(T(0)), infinity(std::numeric_limits<T>::infinity());
  const P power = power_of_size(abs(x), y);
  if (all((zero < x) & (x < infinity) & (abs(y) < infinity))) [[likely]]
    return power;
  return power_at_edges(power, x, y);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
