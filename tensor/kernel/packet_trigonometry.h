#pragma once
/// Sine, cosine and tangent of packets of floats, all arguments reduced by as many digits of pi as they need.
///
/// The rest of x by pi / 2 is taken in three floats up to 1e5, in two doubles up to 2^27, and by integers beyond; then
/// a polynomial of it (tests/data/make_kernel_polynomials.py). Errors in ULP with a multiply-add that rounds once
/// (AVX2; AVX-512 and NEON compute the same bits), and without one (SSE2), over all floats. Tried with it: all positive
/// ones for sin; for cos and tan all from 1/8 to 2^17, and every 131st.
///
///   sin, cos 1.6 (1.6), tan 1.3 (2.1).
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// x = k pi / 2 + r - over, k in the last bits of `quadrant`, r from -pi / 4 to pi / 4 (and 0.8 % beyond), `over` what
/// r was rounded by.
struct Turned {
  Packet<float> r, over;
  Bits quadrant;
};

/// The argument from which the number of quarter turns has too many digits for the sums of `turned`.
inline constexpr float kManyTurns = 1e5F;

/// The rest of one large number. Of 2 / pi 96 bits are multiplied with the 24 of x: those whose products reach from
/// twice a quarter turn down (Payne and Hanek, "Radian reduction for trigonometric functions", 1983), so 62 are left.
inline double turned_lane(std::uint32_t x, std::int32_t& quadrant) {
  static constexpr std::uint32_t kTwoByPi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1,
                                               0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe600000};
  const std::uint32_t exponent = (x >> 23) & 255, from = exponent - 120, word = from / 32, shift = from % 32;
  if (exponent == 255) return std::numeric_limits<double>::quiet_NaN();
  const auto part = [&](std::uint32_t i) {
    const std::uint64_t two = std::uint64_t{kTwoByPi[word + i]} << 32 | kTwoByPi[word + i + 1];
    return two << shift >> 32;
  };
  const std::uint64_t digits = (x & 0x7fffff) | 0x800000;
  const std::uint64_t turns = (digits * part(0) << 32) + digits * part(1) + (digits * part(2) >> 32);
  const std::uint64_t nearest = (turns + (std::uint64_t{1} << 61)) >> 62;
  const double rest = static_cast<double>(static_cast<std::int64_t>(turns - (nearest << 62))) * 0x1.921fb54442d18p-62;
  quadrant = static_cast<std::int32_t>(x >> 31 == 0 ? nearest : 0 - nearest);
  return x >> 31 == 0 ? rest : -rest;
}
/// The argument up to which turn_large reduces in doubles (only where the machine rounds once); beyond, it works lane
/// by lane.
inline constexpr float kManyMoreTurns = kRoundsOnce ? 0x1p27F : kManyTurns;
[[gnu::noinline, gnu::cold]] inline void turn_large(Packet<float> x, Turned& t) {
  using P = Packet<float>;
  const P size = abs(x);
  if constexpr (kRoundsOnce) {
    using D = Packet<double>;
    const D shift(0x1.8p52);
    Doubles v = to_doubles(x), turns = v;
    for (std::size_t i = 0; i < std::size(v.at); ++i) {
      const D n = fma(v.at[i], D(0.63661977236758138), shift) - shift, quarters = n * D(0.25);
      turns.at[i] = fma((quarters + shift) - shift, D(-4.0), n);
      v.at[i] = fma(n, D(-6.123233995736766e-17), fma(n, D(-1.5707963267948966), v.at[i]));
    }
    const P r = to_floats(v);
    const Doubles back = to_doubles(r);
    for (std::size_t i = 0; i < std::size(v.at); ++i) v.at[i] = back.at[i] - v.at[i];
    const Mask<float> few = size < P(kManyTurns);
    t.r = select(few, t.r, r);
    t.over = select(few, t.over, to_floats(v));
    t.quadrant = bits_of(select(few, from_bits(t.quadrant), from_bits(to_bits(to_floats(turns)))));
  }
  if (all(size < P(kManyMoreTurns))) return;
  constexpr auto width = static_cast<std::size_t>(kLanes<float>);
  alignas(64) float in[width], r[width], over[width];
  alignas(64) std::int32_t quadrant[width];
  x.store(in), t.r.store(r), t.over.store(over);
  std::memcpy(quadrant, &t.quadrant, sizeof quadrant);
  for (std::size_t i = 0; i < width; ++i) {
    if (std::abs(in[i]) < kManyMoreTurns) continue;
    const double v = turned_lane(std::bit_cast<std::uint32_t>(in[i]), quadrant[i]);
    r[i] = static_cast<float>(v);
    over[i] = static_cast<float>(static_cast<double>(r[i]) - v);
  }
  t.r = P::load(r), t.over = P::load(over);
  std::memcpy(&t.quadrant, quadrant, sizeof quadrant);
}

/// pi / 2 in three floats, each rounded down, so that what is taken from -0 is +0 and leaves it. The first difference
/// is exact, being a multiple of 2^-24 below 1. Without an instruction for it the rest is taken in doubles, of which
/// the first constant has 33 bits.
template <bool with_over>
[[gnu::always_inline]] inline Turned turned(Packet<float> x) {
  using P = Packet<float>;
  const P sum = fma(x, P(0.636619747F), P(12582912.0F)), n = sum - P(12582912.0F);
  Turned t = {P(0.0F), P(0.0F), bits_of(sum)};
  if constexpr (!kRoundsOnce) {
    Doubles wide = to_doubles(x);
    const Doubles k = to_doubles(n);
    for (std::size_t i = 0; i < std::size(wide.at); ++i) {
      using D = Packet<double>;
      wide.at[i] = (wide.at[i] - k.at[i] * D(1.57079631090164184570)) - k.at[i] * D(1.58932547735281966916e-08);
    }
    t.r = to_floats(wide);
  } else if constexpr (with_over) {
    const P first = fma(n, P(-1.57079625F), x), second = n * P(7.54978942e-8F);
    const P lost = fma(n, P(5.39030253e-15F), fma(n, P(7.54978942e-8F), -second));
    t.r = first - second;
    t.over = lost + (second - (first - t.r));
  } else {
    t.r = fma(n, P(-5.39030253e-15F), fma(n, P(-7.54978942e-8F), fma(n, P(-1.57079625F), x)));
  }
  if (!all(abs(x) < P(kManyTurns))) [[unlikely]]
    turn_large(x, t);
  return t;
}

/// sin(r), or cos(r) for odd quadrants, the sign turned over for the second two.
[[gnu::always_inline]] inline Packet<float> sine(Packet<float> r, Bits quadrant) {
  using P = Packet<float>;
  static constexpr float kSin[] = {-0.166666672F, 0.00833332911F, -0.000198392721F, 2.71771432e-06F};
  static constexpr float kCos[] = {-0.5F, 0.0416666679F, -0.00138888811F, 2.47989592e-05F, -2.71740646e-07F};
  const P z = r * r, cos = fma(z, polynomial(z, kCos), P(1.0F));
  const P sin = copysign(fma(r * z, polynomial(z, kSin), r), r);  // else of -0 it were 0
  const Mask<float> odd = P(0.0F) < from_bits((quadrant & bits(1)) << 24);
  const Bits sign = (quadrant & bits(2)) << 30;
  return from_bits(bits_of(select(odd, cos, sin)) ^ sign);
}
inline Packet<float> sin(Packet<float> x) {
  const Turned t = turned<false>(x);
  return sine(t.r, t.quadrant);
}
inline Packet<float> cos(Packet<float> x) {
  const Turned t = turned<false>(x);
  return sine(t.r, t.quadrant + bits(1));
}

/// tan(r - over) = r + (r^3 T(r^2) - over (1 + tan(r)^2)); for odd quadrants -1 by that, with what the sum and the
/// quotient lose.
inline Packet<float> tan(Packet<float> x) {
  using P = Packet<float>;
  static constexpr float kTan[] = {0.333333522F, 0.133325815F,     0.0540694781F, 0.0212315507F,
                                   0.010970152F, -8.44329115e-05F, 0.00446379092F};
  const Turned t = turned<true>(x);
  const P z = t.r * t.r, slope = fma(z, P(1.6F), P(1.0F));
  const P more = fma(t.r * z, polynomial(z, kTan), -(t.over * slope)), y = t.r + more;
  const P lost = (t.r - y) + more, inverse = P(-1.0F) / y;
  const P other = fma(inverse, fma(inverse, lost, fma(inverse, y, P(1.0F))), inverse);
  const Mask<float> odd = P(0.0F) < from_bits((t.quadrant & bits(1)) << 24);
  return select(odd, other, y);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
