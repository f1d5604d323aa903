#pragma once
/// Logarithms of packets of floats, and of packets of doubles that are positive and normal.
///
/// x = 2^n (1 + f), 1 + f from sqrt(1/2) to sqrt(2), and ln(x) = n ln(2) + f - f^2 / 2 + f^3 L(f), where the first sum
/// is carried exactly and L a polynomial (tests/data/make_kernel_polynomials.py). Errors in ULP with a
/// multiply-add that rounds once (AVX2; AVX-512 and NEON compute the same bits), and without one (SSE2), over all
/// floats, denormal numbers included. Tried with it: all for log1p, for the others all from 1/8 to 16, and every 131st.
///
///   log 0.86 (0.86), log2 0.98 (1.2), log10 0.88 (1), log1p 0.83 (0.9); log_of_normal of doubles 1.
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// ln(1 + f) - f = -f^2 / 2 + f^3 L(f) for 1 + f from sqrt(1/2) to sqrt(2).
[[gnu::always_inline]] inline Packet<float> log_less_first(Packet<float> f) {
  using P = Packet<float>;
  static constexpr float kLog[] = {0.333333135F,  -0.250000089F, 0.200021192F,  -0.166679963F, 0.142195508F,
                                   -0.124055915F, 0.118881747F,  -0.116756409F, 0.0674660131F};
  const P square = f * f;
  return fma(f * square, polynomial(f, kLog), square * P(-0.5F));
}

/// x = 2^n (1 + f).
struct LogParts {
  Packet<float> n, f;
};
/// The parts of x, which must be positive, finite and normal.
[[gnu::always_inline]] inline LogParts log_parts(Packet<float> x) {
  const Bits n = (bits_of(x) - bits(0x3f3504f3)) >> 23;
  return {to_floats(n), from_bits(bits_of(x) - (n << 23)) - Packet<float>(1.0F)};
}
/// a + b + rest, a being 0 or the larger one: what the first sum loses is added to the rest.
[[gnu::always_inline]] inline Packet<float> sum_of(Packet<float> a, Packet<float> b, Packet<float> rest) {
  const Packet<float> high = a + b;
  return high + (((a - high) + b) + rest);
}
[[gnu::always_inline]] inline Packet<float> log_of(LogParts x) {
  using P = Packet<float>;
  return sum_of(x.n * P(0.693359375F), x.f, fma(x.n, P(-2.12194440e-4F), log_less_first(x.f)));
}
/// ln(x) of positive, finite and normal x.
inline Packet<float> log_of_normal(Packet<float> x) { return log_of(log_parts(x)); }

/// f of the parts of x: denormals are scaled by 2^24 before. -infinity of 0, NaN of what is below.
template <class F>
[[gnu::always_inline]] inline Packet<float> of_any_number(Packet<float> x, F f) {
  using P = Packet<float>;
  const P zero(0.0F), infinity(std::numeric_limits<float>::infinity());
  const Mask<float> small = x < P(std::numeric_limits<float>::min());
  LogParts parts = log_parts(select(small, x * P(0x1p24F), x));
  parts.n = parts.n - or_zero(small, P(24.0F));
  const P edge = select(x < zero, P(std::numeric_limits<float>::quiet_NaN()), select(x == zero, -infinity, x));
  return select((zero < x) & (x < infinity), f(parts), edge);
}
inline Packet<float> log(Packet<float> x) { return of_any_number(x, log_of); }

/// f c of a constant in two floats, c = high + low: the product, rounded, and what that leaves. Without an instruction
/// for it the product is one of halves of 12 digits (Dekker, "A floating-point technique", 1971).
struct Scaled {
  Packet<float> high, low;
};
[[gnu::always_inline]] inline Scaled scaled_by(Packet<float> f, float high, float low) {
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
inline Packet<float> log2(Packet<float> x) {
  using P = Packet<float>;
  return of_any_number(x, [](LogParts v) {
    const Scaled s = scaled_by(v.f, 1.44269502F, 1.92596303e-8F);
    // The rounding of f^2 in log_less_first would cost half a digit at both ends of the range of f: it is added here.
    const P square = v.f * v.f, low = fma(fma(v.f, v.f, -square), P(-0.5F * 1.44269502F), s.low);
    return sum_of(v.n, s.high, fma(log_less_first(v.f), P(1.44269502F), low));
  });
}
/// log10(2) is split into 12 bits, whose products with exponents are exact, and a rest.
inline Packet<float> log10(Packet<float> x) {
  using P = Packet<float>;
  return of_any_number(x, [](LogParts v) {
    const Scaled s = scaled_by(v.f, 0.434294492F, -1.010305e-8F);
    const P rest = fma(log_less_first(v.f), P(0.434294492F), fma(v.n, P(4.60503898e-6F), s.low));
    return sum_of(v.n * P(0.301025391F), s.high, rest);
  });
}

/// 1 + x = 2^n (1 + f + e): n of the rounded sum, f = x / 2^n + (1 / 2^n - 1) rounded, and e, what that loses. x / 4
/// is what is scaled, so that the factor is a normal number for all x. Near 0 it is x: so -0 stays.
inline Packet<float> log1p(Packet<float> x) {
  using P = Packet<float>;
  const P one(1.0F), quarter = x * P(0.25F);
  const Bits n = (bits_of(one + x) - bits(0x3f3504f3)) >> 23;
  const P inverse = from_bits((bits(129) - n) << 23), less = fma(inverse, P(0.25F), -one);
  const P f = fma(inverse, quarter, less), e = fma(inverse, quarter, less - f), power = to_floats(n);
  const P rest = fma(power, P(-2.12194440e-4F), log_less_first(f) + fma(-e, f, e));
  const P y = sum_of(power * P(0.693359375F), f, rest);
  const P edge = select(x < -one, P(std::numeric_limits<float>::quiet_NaN()),
                        select(x == -one, P(-std::numeric_limits<float>::infinity()), x));
  const Mask<float> usual = (-one < x) & (x < P(std::numeric_limits<float>::infinity())) & (P(0x1p-25F) < abs(x));
  return select(usual, y, edge);
}

/// ln(x) in doubles, x positive and normal, or infinite or NaN, which stay: ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + s^2
/// R(s^2))), s = f / (2 + f) (as in FreeBSD's e_log.c; R interpolated at Chebyshev's points, off by 5e-18 of the
/// whole).
inline Packet<double> log_of_normal(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {0.66666666666666696, 0.39999999999898889, 0.28571428626253836,
                                       0.22222211089379496, 0.18182892432536871, 0.15331611722055008,
                                       0.14617807153417325};
  // Exponents from the root of 1/2 on, biased by 1023 so that a shift without sign does, and the number 2^52 + those.
  const Bits64 biased = (bits_of(x) + bits64(0x3ff0000000000000 - 0x3fe6a09e667f3bcd)) >> 52;
  const P n = from_bits(biased | bits64(0x4330000000000000)) - P(0x1p52 + 1023);
  const P f = from_bits(bits_of(x) - ((biased - bits64(1023)) << 52)) - P(1.0);
  const P s = f / (P(2.0) + f), z = s * s, half_square = P(0.5) * f * f;
  const P less = half_square - fma(s, fma(z, polynomial(z, kSeries), half_square), n * P(1.9082149292705877e-10));
  return select(x < P(std::numeric_limits<double>::infinity()), fma(n, P(0.6931471803691238), f - less), x);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
