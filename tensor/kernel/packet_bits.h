#pragma once
/// The bits of packets as whole numbers, a lane each, with the operators of the language: +, -, &, |, <<, and >>, which
/// shifts 32-bit lanes with their sign and 64-bit lanes without (AVX2 cannot do it with). Also the halves of a packet
/// of floats in doubles.
#include <bit>
#include <cstdint>
#include <utility>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

using Bits = RawBits<float>;
using Bits64 [[gnu::vector_size(kVectorBytes)]] = std::uint64_t;

/// A vector that holds v in every lane.
inline Bits bits(std::int32_t v) { return Bits{} + v; }
inline Bits64 bits64(std::uint64_t v) { return Bits64{} + v; }

inline Bits bits_of(Packet<float> x) { return raw_bits(x.raw); }
inline Bits64 bits_of(Packet<double> x) { return std::bit_cast<Bits64>(x.raw); }
inline Packet<float> from_bits(Bits b) { return raw_from_bits(b); }
inline Packet<double> from_bits(Bits64 b) { return std::bit_cast<RawDoubles>(b); }

inline Packet<float> to_floats(Bits b) { return __builtin_convertvector(b, RawFloats); }
/// The conversion of whole numbers below 2^31 to integers.
inline Bits to_bits(Packet<float> x) { return __builtin_convertvector(x.raw, Bits); }

/// Added to a float below 2^22 in size, it leaves the nearest whole number in the last bits of the sum: 1.5 2^23.
inline constexpr float kWholeInLastBits = 12582912.0F;
/// The same for doubles below 2^51.
inline constexpr double kWholeInLastBits64 = 0x1.8p52;

/// 2^n for whole n, of normal numbers.
inline Packet<float> power_of_two(Packet<float> n) { return from_bits((to_bits(n) + bits(127)) << 23); }
inline Packet<double> power_of_two(Packet<double> n) {
  return from_bits((bits_of(n + Packet<double>(kWholeInLastBits64)) + bits64(1023)) << 52);
}

/// What rounding took from p = a b. Without an instruction for it the product is one of halves (Dekker, "A
/// floating-point technique for extending the available precision", 1971).
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

/// The floats of a packet in doubles.
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
  constexpr std::make_integer_sequence<int, kLanes<double>> lanes;
  return {{widened<0>(x.raw, lanes), widened<kLanes<double>>(x.raw, lanes)}};
}
template <int... lane>
[[gnu::always_inline]] inline Packet<float> joined(FloatPart a, FloatPart b, std::integer_sequence<int, lane...>) {
  return RawFloats(__builtin_shufflevector(a, b, lane...));
}
/// Rounds them to floats.
inline Packet<float> to_floats(const Doubles& x) {
  const auto part = [&](int i) { return __builtin_convertvector(x.at[i].raw, FloatPart); };
  return joined(part(0), part(1), std::make_integer_sequence<int, kLanes<float>>{});
}

}  // namespace ferrite::detail::FERRITE_LEVEL
