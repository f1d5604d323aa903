#pragma once
/// The bits of packets as integers, one for each lane, with the operators of the language: +, -, &, |, <<, and >>,
/// which shifts 32-bit lanes with their sign and 64-bit lanes without (AVX2 cannot do it with). Also the halves of a
/// packet of floats as doubles, and rounding to whole numbers.
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

inline Bits bits_of(Packet<float> x) { return raw_bits(x.raw); }
inline Bits64 bits_of(Packet<double> x) { return raw_unsigned_bits(x.raw); }
inline Packet<float> from_bits(Bits b) { return raw_from_bits(b); }
inline Packet<double> from_bits(Bits64 b) { return raw_from_bits(b); }

inline Packet<float> to_floats(Bits b) { return raw_to_floats(b); }
/// Converts whole numbers below 2^31 to integers.
inline Bits to_bits(Packet<float> x) { return raw_to_bits(x.raw); }

/// Leaves the nearest whole number in the last bits of the sum when added to a float below 2^22 in size: 1.5 2^23.
inline constexpr float kWholeInLastBits = 12582912.0F;
/// Leaves the nearest whole number in the last bits of the sum when added to a double below 2^51 in size.
inline constexpr double kWholeInLastBits64 = 0x1.8p52;

/// Returns 2^n for whole n, where that is a normal number.
inline Packet<float> power_of_two(Packet<float> n) { return from_bits((to_bits(n) + bits(127)) << 23); }
inline Packet<double> power_of_two(Packet<double> n) {
  return from_bits((bits_of(n + Packet<double>(kWholeInLastBits64)) + bits64(1023)) << 52);
}

/// Returns the rounding error of p = a b. Without a fused multiply-add it multiplies halves (Dekker, "A floating-point
/// technique for extending the available precision", 1971).
[[gnu::always_inline]] inline Packet<double> rest_of_product(Packet<double> a, Packet<double> b, Packet<double> p) {
  if constexpr (kRoundsOnce) {
    return fma(a, b, -p);
  } else {
    const Bits64 half = bits64(~((std::uint64_t{1} << 27) - 1));
    const Packet<double> a0 = from_bits(bits_of(a) & half), b0 = from_bits(bits_of(b) & half);
    const Packet<double> a1 = a - a0, b1 = b - b0;
    return (((a0 * b0 - p) + a0 * b1) + a1 * b0) + a1 * b1;
  }
}

/// The floats of a packet as doubles.
#ifdef FERRITE_WRITTEN
struct Doubles {
  Packet<double> at[1];
};
inline Doubles to_doubles(Packet<float> x) { return {{widen_raw(x.raw)}}; }
inline Packet<float> to_floats(const Doubles& x) { return narrow_raw(x.at[0].raw); }
#else
struct Doubles {
  Packet<double> at[2];
};
using FloatPart [[gnu::vector_size(kVectorBytes / 2)]] = float;

template <int first, int... lane>
[[gnu::always_inline]] inline Packet<double> widened(RawFloats x, std::integer_sequence<int, lane...>) {
  const FloatPart part = __builtin_shufflevector(x, x, (first + lane)...);
#if defined(__AVX512F__)
  return RawDoubles(_mm512_cvtps_pd(part));
#elif defined(__AVX__)
  return RawDoubles(_mm256_cvtps_pd(part));  // g++ 12 takes four instructions for its own conversion
#else
  return RawDoubles(__builtin_convertvector(part, RawDoubles));
#endif
}
inline Doubles to_doubles(Packet<float> x) {
  constexpr std::make_integer_sequence<int, kLanes<double> > lanes;
  return {{widened<0>(x.raw, lanes), widened<kLanes<double> >(x.raw, lanes)}};
}
template <int... lane>
[[gnu::always_inline]] inline Packet<float> joined(FloatPart a, FloatPart b, std::integer_sequence<int, lane...>) {
  return RawFloats(__builtin_shufflevector(a, b, lane...));
}
/// Rounds doubles to a packet of floats.
inline Packet<float> to_floats(const Doubles& x) {
  const auto part = [&](int i) { return __builtin_convertvector(x.at[i].raw, FloatPart); };
  return joined(part(0), part(1), std::make_integer_sequence<int, kLanes<float> >{});
}
#endif

// ---- packets of floats computed in doubles ----------------------------------------------------------------

/// Applies f to packets of doubles and rounds the result once.
template <class F, class... X>
Packet<float> in_doubles(F f, X... x) {
  const auto run = [&](const auto&... wide) {
    Doubles y;
    for (std::size_t i = 0; i < std::size(y.at); ++i) y.at[i] = f(wide.at[i]...);
    return to_floats(y);
  };
  return run(to_doubles(x)...);
}

// ---- rounding to whole numbers, and division with remainder: exact, of both widths ------------------------

/// Returns y where the mask holds, else f of the operands, computed lane by lane: for rare operands.
template <class T, class F>
Packet<T> mended(Mask<T> usual, Packet<T> y, Packet<T> x, F f) {
#ifdef FERRITE_WRITTEN
  return mended_raw(usual.raw, y.raw, f, x.raw);
#else
  if (all(usual)) [[likely]]
    return y;
  return select(usual, y, by_lane(x, f));
#endif
}
template <class T, class F>
Packet<T> mended(Mask<T> usual, Packet<T> y, Packet<T> a, Packet<T> b, F f) {
#ifdef FERRITE_WRITTEN
  return mended_raw(usual.raw, y.raw, f, a.raw, b.raw);
#else
  if (all(usual)) [[likely]]
    return y;
  return select(usual, y, by_lane(a, b, f));
#endif
}

/// Rounds to the nearest whole number, halves to even: a number added to 2^23 (2^52) is rounded to a whole one.
template <class T>
Packet<T> nearest(Packet<T> x) {
  if constexpr (kRoundsToWhole) {
    return nearest_raw(x.raw);
  } else {
    const Packet<T> whole(T(1) / std::numeric_limits<T>::epsilon());  // all larger floats are whole
    const Packet<T> size = abs(x);
    return select(size < whole, copysign((size + whole) - whole, x), x);
  }
}
template <class T>
Packet<T> floor(Packet<T> x) {
  const Packet<T> near = nearest(x);
  return copysign(near - or_zero(near > x, Packet<T>(T(1))), x);
}
template <class T>
Packet<T> ceil(Packet<T> x) {
  const Packet<T> near = nearest(x);
  return copysign(near + or_zero(near < x, Packet<T>(T(1))), x);
}
template <class T>
Packet<T> trunc(Packet<T> x) {
  const Packet<T> size = abs(x), near = nearest(size);
  return copysign(near - or_zero(near > size, Packet<T>(T(1))), x);
}

/// Returns a - b trunc(a / b). The rounded quotient is at most one too large; with one rounding a - b q is exact.
template <class T>
Packet<T> fmod(Packet<T> a, Packet<T> b) {
  const FmodNumber exact;
  if constexpr (!kRoundsOnce) {
    return by_lane(a, b, exact);
  } else {
    using P = Packet<T>;
    const P size = abs(a), step = abs(b), q = trunc(size / step);
    const P rest = fma(-q, step, size);
    const P y = copysign(rest + or_zero(rest < P(T(0)), step), a);
    const P most = T(1) / std::numeric_limits<T>::epsilon() / 2;  // quotients below are whole numbers and their halves
    return mended((q < most) & (step < P(std::numeric_limits<T>::infinity())), y, a, b, exact);
  }
}
/// Returns the remainder with the divisor's sign.
template <class T>
Packet<T> remainder(Packet<T> a, Packet<T> b) {
  using P = Packet<T>;
  const P r = fmod(a, b), zero(T(0));
  return r + or_zero(((r < zero) & (zero < b)) | ((zero < r) & (b < zero)), b);
}
/// Returns floor(a / b), as Python's //: the quotient of a without the remainder, so that it is whole up to rounding.
template <class T>
Packet<T> floor_divide(Packet<T> a, Packet<T> b) {
  using P = Packet<T>;
  const P r = fmod(a, b), zero(T(0)), one(T(1));
  const P exact = (a - r) / b;
  const P q = exact - or_zero(((r < zero) & (zero < b)) | ((zero < r) & (b < zero)), one);
  const P whole = floor(q);
  const P y = whole + or_zero(P(T(0.5)) < q - whole, one);
  const P quotient = a / b;
  return select(b == zero, quotient, select(q == zero, copysign(zero, quotient), y));
}

}  // namespace ferrite::detail::FERRITE_LEVEL
