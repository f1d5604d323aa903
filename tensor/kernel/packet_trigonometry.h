#pragma once
/// Sine, cosine and tangent of packets; arguments are reduced by as many digits of pi as they need.
///
/// The remainder of a float x by pi / 2 is taken in three floats up to 1e5, in two doubles up to 2^27, and by integers
/// beyond; that of a double in three doubles up to 2^30 (SSE2: four, 2^20) and by integers beyond. Then a polynomial of
/// it is evaluated (tests/data/make_kernel_polynomials.py). Errors in ULP with a multiply-add that rounds once (AVX2;
/// AVX-512 and NEON compute the same bits), and without one (SSE2), over all numbers. With it, sin was tested on all
/// positive floats; cos and tan on all from 1/8 to 2^17, and on every 131st.
///
///   f32: sin, cos 1.6 (1.6), tan 1.3 (2.1).
///   f64: sin, cos 0.83 (0.9), tan 1.3 (1.55).
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// A reduced argument: x = k pi / 2 + r - over, k in the last bits of `quadrant`, r from -pi / 4 to pi / 4
/// (and 0.8 % beyond), `over` the rounding error of r.
struct Turned {
  Packet<float> r, over;
  Bits quadrant;
};

/// The argument from which the number of quarter turns has too many digits for the sums of `turned`.
inline constexpr float kManyTurns = 1e5F;

/// Returns the remainder of one large number. 96 bits of 2 / pi are multiplied by the 24 of x: those whose products
/// reach from twice a quarter turn down (Payne and Hanek, "Radian reduction for trigonometric functions", 1983), so 62
/// are left.
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
#ifdef FERRITE_WRITTEN
inline void turn_large(Packet<float> x, Turned& t) {
  using enum WrittenKind;
  t.r = call_written<floats, floats>("turned_rest", x.raw, t.r.raw);
  t.over = call_written<floats, floats>("turned_over", x.raw, t.over.raw);
  t.quadrant = call_written<ints, floats>("turned_quadrant", x.raw, t.quadrant);
}
#else
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
#endif

/// Reduces x by pi / 2 in three floats, each rounded down, so that subtracting from -0 subtracts +0 and keeps it. The
/// first difference is exact, being a multiple of 2^-24 below 1. Without a fused multiply-add the remainder is computed
/// in doubles, of which the first constant has 33 bits.
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

/// Returns sin(r), or cos(r) for odd quadrants, with the sign inverted in the third and fourth.
[[gnu::always_inline]] inline Packet<float> sine(Packet<float> r, Bits quadrant) {
  using P = Packet<float>;
  static constexpr float kSin[] = {-0.166666672F, 0.00833332911F, -0.000198392721F, 2.71771432e-06F};
  static constexpr float kCos[] = {-0.5F, 0.0416666679F, -0.00138888811F, 2.47989592e-05F, -2.71740646e-07F};
  const P z = r * r, cos = fma(z, polynomial(z, kCos), P(1.0F));
  const P sin = copysign(fma(r * z, polynomial(z, kSin), r), r);  // otherwise the sine of -0 would be 0
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

/// Returns tan(r - over) = r + (r^3 T(r^2) - over (1 + tan(r)^2)); for odd quadrants -1 divided by that, with the
/// rounding errors of the sum and the quotient.
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

// ---- f64 -----------------------------------------------------------------------------------------------

/// A reduced argument in doubles: x = k pi / 2 + r - over, as in Turned.
struct TurnedDoubles {
  Packet<double> r, over;
  Bits64 quadrant;
};

/// Half of pi in two doubles, each rounded down, so that subtracting from -0 subtracts +0 and keeps it.
inline constexpr double kQuarterTurn = 1.5707963267948966, kQuarterTurnRest = 6.1232339957367648e-17;

/// The argument from which turn_large reduces doubles lane by lane.
inline constexpr double kManyTurns64 = kRoundsOnce ? 0x1p30 : 0x1p20;

/// The remainder of one large number in quarter turns, in two doubles, and its quadrant; NaN if it is not finite.
struct LaneTurn {
  double high, low;
  std::uint64_t quadrant;
};
/// Reduces one large number. 192 bits of 2 / pi are multiplied by the 53 of x: those whose products reach from twice a
/// quarter turn down (Payne and Hanek), so that 2^-137 is lost, and no double is nearer to a quarter turn than 2^-62.
inline LaneTurn turned_lane(double x) {
  static constexpr std::uint32_t kTwoByPi[] = {
      0,          0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
      0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
      0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
      0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
      0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};
  const auto raw = std::bit_cast<std::uint64_t>(x);
  const std::uint32_t exponent = static_cast<std::uint32_t>(raw >> 52) & 2047, from = exponent - 1013;
  if (exponent == 2047) return {std::numeric_limits<double>::quiet_NaN(), 0, 0};
  const std::uint64_t digits = (raw & 0xfffffffffffff) | 0x10000000000000;
  std::uint32_t turns[6] = {};  // the least significant word first
  for (std::uint32_t place = 0; place < 2; ++place) {
    std::uint64_t carry = 0;
    for (std::uint32_t i = 0; i + place < 6; ++i) {
      const std::uint32_t* word = kTwoByPi + from / 32 + 5 - i;
      const std::uint64_t part = (std::uint64_t{word[0]} << 32 | word[1]) << (from % 32) >> 32;
      carry += part * (digits >> (32 * place) & 0xffffffff) + turns[i + place];
      turns[i + place] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  const auto pair = [&](int i) { return std::uint64_t{turns[i + 1]} << 32 | turns[i]; };
  std::uint64_t high = pair(4), middle = pair(2), low = pair(0);
  const std::uint64_t nearest = (high + (std::uint64_t{1} << 61)) >> 62;
  high -= nearest << 62;
  const bool below = high >> 63 != 0;
  if (below) {
    low = 0 - low;
    middle = ~middle + (low == 0 ? 1 : 0);
    high = ~high + (low == 0 && middle == 0 ? 1 : 0);
  }
  std::uint64_t scale = 1023 + 11 - 62;
  if (high == 0) high = middle, middle = low, low = 0, scale -= 64;
  if (const int zeros = std::countl_zero(high); zeros > 0 && zeros < 64) {
    high = high << zeros | middle >> (64 - zeros);
    middle = middle << zeros | low >> (64 - zeros);
    scale -= static_cast<std::uint64_t>(zeros);
  }
  const double sign = (raw >> 63 != 0) != below ? -1.0 : 1.0;
  const double first = static_cast<double>(high >> 11) * std::bit_cast<double>(scale << 52);
  const double rest =
      static_cast<double>((high & 0x7ff) << 42 | middle >> 22) * std::bit_cast<double>((scale - 53) << 52);
  return {sign * first, sign * rest, raw >> 63 != 0 ? 0 - nearest : nearest};
}
#ifdef FERRITE_WRITTEN
inline void turn_large(Packet<double> x, TurnedDoubles& t) {
  using enum WrittenKind;
  t.r = call_written<doubles, doubles>("turned_rest", x.raw, t.r.raw);
  t.over = call_written<doubles, doubles>("turned_over", x.raw, t.over.raw);
  t.quadrant = call_written<longs, doubles>("turned_quadrant", x.raw, t.quadrant);
}
#else
[[gnu::noinline, gnu::cold]] inline void turn_large(Packet<double> x, TurnedDoubles& t) {
  using P = Packet<double>;
  constexpr auto width = static_cast<std::size_t>(kLanes<double>);
  alignas(64) double in[width], high[width] = {}, low[width] = {};
  alignas(64) std::uint64_t quadrant[width];
  x.store(in);
  std::memcpy(quadrant, &t.quadrant, sizeof quadrant);
  for (std::size_t i = 0; i < width; ++i) {
    if (std::abs(in[i]) < kManyTurns64) continue;
    const LaneTurn lane = turned_lane(in[i]);
    high[i] = lane.high, low[i] = lane.low, quadrant[i] = lane.quadrant;
  }
  std::memcpy(&t.quadrant, quadrant, sizeof quadrant);
  const P a = P::load(high), b = P::load(low), product = a * P(kQuarterTurn);
  const P rest = rest_of_product(a, kQuarterTurn, product) + fma(a, P(kQuarterTurnRest), b * P(kQuarterTurn));
  const P r = product + rest;
  const Mask<double> few = abs(x) < P(kManyTurns64);
  t.r = select(few, t.r, r);
  t.over = select(few, t.over, (r - product) - rest);
}
#endif

/// The difference a - b, and its rounding error.
struct Difference {
  Packet<double> high, low;
};
[[gnu::always_inline]] inline Difference difference(Packet<double> a, Packet<double> b) {
  const Packet<double> high = a - b, taken = a - high;
  return {high, (a - (high + taken)) + (taken - b)};
}
/// Reduces x by pi / 2. The first difference is exact, being a multiple of 2^-53 below 1. Without a multiply-add that
/// rounds once the first three parts have 33 bits, whose products with 20 are exact.
[[gnu::always_inline]] inline TurnedDoubles turned(Packet<double> x) {
  using P = Packet<double>;
  const P sum = fma(x, P(0.63661977236758138), P(kWholeInLastBits64)), n = sum - P(kWholeInLastBits64);
  TurnedDoubles t = {P(0.0), P(0.0), bits_of(sum)};
  if constexpr (kRoundsOnce) {
    const P first = fma(n, P(-kQuarterTurn), x), second = n * P(kQuarterTurnRest);
    const P lost = fma(n, P(1.082856673921914e-32), fma(n, P(kQuarterTurnRest), -second));
    t.r = first - second;
    t.over = lost + (second - (first - t.r));
  } else {
    const Difference a = difference(x - n * P(1.5707963267341256), n * P(6.077100506303966e-11));
    const Difference b = difference(a.high, n * P(2.0222662487111665e-21));
    const P rest = n * P(8.4784276603688996e-32) - (a.low + b.low);  // +0 for -0, which keeps it
    t.r = b.high - rest;
    t.over = rest - (b.high - t.r);
  }
  if (!all(abs(x) < P(kManyTurns64))) [[unlikely]]
    turn_large(x, t);
  return t;
}

/// Returns a mask of the odd quadrants.
[[gnu::always_inline]] inline Mask<double> odd_turns(Bits64 quadrant) {
  return Packet<double>(0.0) < from_bits((quadrant & bits64(1)) << 53);
}
/// Returns sin(r - over) = r + (r^3 S(r^2) - over cos(r)), or, for odd quadrants, its cosine, where 1 - r^2 / 2 is
/// carried with its rounding error; the sign is inverted in the third and fourth.
[[gnu::always_inline]] inline Packet<double> sine(const TurnedDoubles& t, Bits64 quadrant) {
  using P = Packet<double>;
  static constexpr double kSin[] = {-0.16666666666666666,   0.0083333333333309462,   -0.00019841269836754971,
                                    2.7557316100683029e-06, -2.5051131455427946e-08, 1.591810123027412e-10};
  static constexpr double kCos[] = {0.041666666666666664,    -0.0013888888888887395, 2.4801587298763433e-05,
                                    -2.7557317270560326e-07, 2.0876146024689747e-09, -1.1382614868556325e-11};
  const P z = t.r * t.r, half = z * P(0.5), one(1.0), near_cos = one - half;
  const P sin = t.r + fma(t.r * z, polynomial(z, kSin), -(t.over * near_cos));
  const P cos = near_cos + (((one - near_cos) - half) + fma(z * z, polynomial(z, kCos), t.over * t.r));
  const Bits64 sign = (quadrant & bits64(2)) << 62;
  // The sine has the sign of r: otherwise that of -0 would be 0.
  return from_bits(bits_of(select(odd_turns(quadrant), cos, copysign(sin, t.r))) ^ sign);
}
inline Packet<double> sin(Packet<double> x) {
  const TurnedDoubles t = turned(x);
  return sine(t, t.quadrant);
}
inline Packet<double> cos(Packet<double> x) {
  const TurnedDoubles t = turned(x);
  return sine(t, t.quadrant + bits64(1));
}
/// Returns tan(x), by a quotient of polynomials.
inline Packet<double> tan(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kAbove[] = {-1302.3181805344127, 83.769019493168059, -0.95643607655486351,
                                      6.9781715866573432e-05};
  static constexpr double kBelow[] = {-3906.9545416032379, 1814.0888751207992, -95.950313446979223, 1.0};
  const TurnedDoubles t = turned(x);
  const P z = t.r * t.r, slope = fma(z, P(1.6), P(1.0));
  const P ratio = polynomial(z, kAbove) / polynomial(z, kBelow);
  const P more = fma(t.r * z, ratio, -(t.over * slope)), y = t.r + more;
  const P lost = (t.r - y) + more, inverse = P(-1.0) / y, product = inverse * y;
  const P left = (product + P(1.0)) + rest_of_product(inverse, y, product);
  const P other = fma(inverse, fma(inverse, lost, left), inverse);
  return select(odd_turns(t.quadrant), other, copysign(y, t.r));
}

}  // namespace ferrite::detail::FERRITE_LEVEL
