#pragma once
/// Powers of packets of floats: 2^(y log2 |x|), the logarithm and the product in doubles, with the special values of
/// C99 (F.9.4.4). Off by 1 ULP at most (SSE2, which has no multiply-add that rounds once: 1.2) in 10^8 pairs of floats,
/// bases near 1 and results at the ends of floats among them (tests/ranges: every exponent of x by y of all sizes).
#include "ferrite/tensor/kernel/packet_bits.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// y log2(x), of x = 2^n (1 + f) by s = f / (2 + f): log2(1 + f) = s (2 / ln(2) + s^2 L(s^2)), off by 2e-11 of it. The
/// quotient is one of floats, which a step of Newton's method makes one of doubles: 1 / (2 + f) = (1 - s) / 2.
[[gnu::always_inline]] inline Doubles scaled_log2(LogParts x, Packet<float> y) {
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

/// |x|^y for finite x and y, x not 0: 2^w, w = y log2 |x|, by the series of exp2. w is a float and what that leaves.
[[gnu::always_inline]] inline Packet<float> power_of_size(Packet<float> size, Packet<float> y) {
  using P = Packet<float>;
  using D = Packet<double>;
  const Mask<float> small = size < P(std::numeric_limits<float>::min());
  LogParts parts = log_parts(select(small, size * P(0x1p24F), size));
  parts.n = parts.n - or_zero(small, P(24.0F));
  Doubles w = scaled_log2(parts, y);
  for (D& v : w.at) v = first_min(first_max(v, D(-151.0)), D(129.0));
  const P high = to_floats(w);
  const Doubles back = to_doubles(high);
  for (std::size_t i = 0; i < std::size(w.at); ++i) w.at[i] = w.at[i] - back.at[i];
  return exp2_of(high, to_floats(w));
}

/// The power where x or y is 0, infinite or NaN, or x is negative, as C99 (F.9.4.4) defines it.
[[gnu::always_inline]] inline Packet<float> power_at_edges(Packet<float> power, Packet<float> x, Packet<float> y) {
  using P = Packet<float>;
  const P zero(0.0F), one(1.0F), infinity(std::numeric_limits<float>::infinity()), size = abs(x);
  const Mask<float> grows = ((one < size) & (zero < y)) | ((size < one) & (y < zero));
  const P limit = select(size == one, one, or_zero(grows, infinity));
  const P finite = select((size == zero) | (size == infinity) | (abs(y) == infinity), limit, power);
  // Floats of 2^24 and more are even, so a bounded exponent has the parity of y.
  const P exponent = first_min(abs(y), P(0x1p24F));
  const Bits whole_part = to_bits(exponent);
  const Mask<float> whole = to_floats(whole_part) == exponent;
  const Bits sign = bits_of(x) & (whole_part << 31);
  const P with_sign = from_bits(bits_of(finite) | bits_of(or_zero(whole, from_bits(sign))));
  const P real = select(whole | (zero <= x) | (x == -infinity), with_sign, P(std::numeric_limits<float>::quiet_NaN()));
  return select((x == one) | (y == zero), one, select(is_nan(x) | is_nan(y), x + y, real));
}

inline Packet<float> pow(Packet<float> x, Packet<float> y) {
  using P = Packet<float>;
  const P zero(0.0F), infinity(std::numeric_limits<float>::infinity());
  const P power = power_of_size(abs(x), y);
  if (all((zero < x) & (x < infinity) & (abs(y) < infinity))) [[likely]]
    return power;
  return power_at_edges(power, x, y);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
