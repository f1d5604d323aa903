#pragma once
/// Powers of packets: 2^(y log2 |x|), the logarithm and the product with twice the digits (of floats in doubles, of
/// doubles in pairs of them), with the special values of C99 (F.9.4.4). Of floats off by 1 ULP at most (SSE2, which has
/// no multiply-add that rounds once: 1.2) in 10^8 pairs, bases near 1 and results at the ends of floats among them
/// (tests/ranges: every exponent of x by y of all sizes); of doubles by 1.1 (1.2).
#include "ferrite/tensor/kernel/packet_bits.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/packet_log.h"
#include "ferrite/tensor/kernel/packet_rounding.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// y log2(x), of x = 2^n (1 + f) by s = f / (2 + f): log2(1 + f) = s (2 / ln(2) + s^2 L(s^2)), off by 2e-11 of it. The
/// quotient is one of floats, which a step of Newton's method makes one of doubles: 1 / (2 + f) = (1 - s) / 2.
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

/// |x|^y for finite x and y, x not 0: 2^w, w = y log2 |x|, by the series of exp2. w is a float and what that leaves.
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

/// log2(x) of x = 2^n (1 + f) as the sum of two doubles, off by 2^-65 of it: s (2 / ln(2) (1 + s^2 / 3) + s^4 L(s^2)),
/// s = f / (2 + f), of which all but L is carried in two.
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
/// Exponents beyond 2^66 in size have the same limits as that.
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

/// Which numbers are whole, and the sign bit where they are odd.
template <class T>
struct Parity {
  Mask<T> whole;
  Packet<T> odd;
};
/// Floats of 2^24 and more are even, so a bounded number has the parity of y.
[[gnu::always_inline]] inline Parity<float> parity(Packet<float> y) {
  const Packet<float> bounded = first_min(abs(y), Packet<float>(0x1p24F));
  const Bits whole = to_bits(bounded);
  return {to_floats(whole) == bounded, from_bits(whole << 31)};
}
/// Half of an odd number lies between two whole ones.
[[gnu::always_inline]] inline Parity<double> parity(Packet<double> y) {
  using P = Packet<double>;
  const P half = y * P(0.5);
  return {nearest(y) == y, or_zero(abs(half - nearest(half)) == P(0.5), P(-0.0))};
}

/// The power where x or y is 0, infinite or NaN, or x is negative, as C99 (F.9.4.4) defines it.
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
