#pragma once
/// Logarithms of packets of floats and doubles.
///
/// x = 2^n (1 + f), 1 + f from sqrt(1/2) to sqrt(2), and ln(x) = n ln(2) + f - f^2 / 2 + f^3 L(f), where the first sum
/// is carried exactly and L a polynomial (tests/data/make_kernel_polynomials.py); of doubles, one of s = f / (2 + f).
/// Errors in ULP with a multiply-add that rounds once (AVX2; AVX-512 and NEON compute the same bits), and without one
/// (SSE2), over all numbers, denormal ones included. Of floats all were tried with it for log1p; for the others all
/// from 1/8 to 16, and every 131st.
///
///   f32: log 0.86 (0.86), log2 0.98 (1.2), log10 0.88 (1), log1p 0.83 (0.9).
///   f64: log 0.84 (0.88), log2 0.95 (1.05), log10 0.91 (0.98), log1p 0.81 (0.86); log_of_normal 1.
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// What logarithms of a width are made of. ln(2) and log10(2) are in a part of few digits, whose products with
/// exponents are exact, and a rest; log2(e) and log10(e) in a number and what that leaves. Denormal numbers are scaled
/// by 2^lift.
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

/// ln(1 + f) - f = -f^2 / 2 + f^3 L(f) for 1 + f from sqrt(1/2) to sqrt(2).
[[gnu::always_inline]] inline Packet<float> log_less_first(Packet<float> f) {
  using P = Packet<float>;
  static constexpr float kLog[] = {0.333333135F,  -0.250000089F, 0.200021192F,  -0.166679963F, 0.142195508F,
                                   -0.124055915F, 0.118881747F,  -0.116756409F, 0.0674660131F};
  const P square = f * f;
  return fma(f * square, polynomial(f, kLog), square * P(-0.5F));
}
/// -f^2 / 2 + s (f^2 / 2 + s^2 R(s^2)), s = f / (2 + f) (as in FreeBSD's e_log.c; R interpolated at Chebyshev's
/// points, off by 5e-18 of the whole).
inline constexpr double kLogRatio[] = {0.66666666666666696, 0.39999999999898889, 0.28571428626253836,
                                       0.22222211089379496, 0.18182892432536871, 0.15331611722055008,
                                       0.14617807153417325};
[[gnu::always_inline]] inline Packet<double> log_less_first(Packet<double> f) {
  using P = Packet<double>;
  const P s = f / (P(2.0) + f), z = s * s, half_square = P(0.5) * f * f;
  return fma(s, fma(z, polynomial(z, kLogRatio), half_square), -half_square);
}

/// x = 2^n (1 + f).
template <class T>
struct LogParts {
  Packet<T> n, f;
};
/// The parts of x, which must be positive, finite and normal.
[[gnu::always_inline]] inline LogParts<float> log_parts(Packet<float> x) {
  const Bits n = (bits_of(x) - bits(0x3f3504f3)) >> 23;
  return {to_floats(n), from_bits(bits_of(x) - (n << 23)) - Packet<float>(1.0F)};
}
/// Exponents from the root of 1/2 on, biased by 1023 so that a shift without sign does, and the number 2^52 + those.
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
/// a + b + rest, a being 0 or the larger one: what the first sum loses is added to the rest.
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
/// ln(x) of positive, finite and normal x.
inline Packet<float> log_of_normal(Packet<float> x) { return log_of(log_parts(x)); }

/// f of the parts of x. -infinity of 0, NaN of what is below.
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

/// f c of a constant in two numbers, c = high + low: the product, rounded, and what that leaves. Without an instruction
/// for it the product is one of halves of 12 digits (Dekker, "A floating-point technique", 1971).
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
    // The rounding of f^2 in log_less_first would cost half a digit at both ends of the range of f: it is added here.
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

/// The exponent n of a normal number as log_parts takes it, and 2^(2 - n), which is normal for all.
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
/// 1 + x = 2^n (1 + f + e): n of the rounded sum, f = x / 2^n + (1 / 2^n - 1) rounded, and e, what that loses. x / 4
/// is what is scaled, so that the factor is a normal number for all x. Near 0 it is x: so -0 stays.
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

/// ln(x) in doubles, x positive and normal, or infinite or NaN, which stay: n ln(2) + f - (f^2 / 2 - ...) without what
/// the sums lose.
inline Packet<double> log_of_normal(Packet<double> x) {
  using P = Packet<double>;
  const LogParts<double> v = log_parts(x);
  const P s = v.f / (P(2.0) + v.f), z = s * s, half_square = P(0.5) * v.f * v.f;
  const P less = half_square - fma(s, fma(z, polynomial(z, kLogRatio), half_square), v.n * P(1.9082149292705877e-10));
  return select(x < P(std::numeric_limits<double>::infinity()), fma(v.n, P(0.6931471803691238), v.f - less), x);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
