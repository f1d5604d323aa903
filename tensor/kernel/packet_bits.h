#pragma once
/// The bits of packets as whole numbers, a lane each, by the compiler's vector types: +, -, &, |, <<, and >>, which
/// shifts 32-bit lanes with their sign and 64-bit lanes without (AVX2 cannot do it with). Also the halves of a packet
/// of floats in doubles.
#include <bit>
#include <cstdint>
#include <utility>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

using Bits [[gnu::vector_size(sizeof(float) * static_cast<std::size_t>(kLanes<float>))]] = std::int32_t;
using Bits64 [[gnu::vector_size(sizeof(double) * static_cast<std::size_t>(kLanes<double>))]] = std::uint64_t;

/// The same number in each lane.
inline Bits bits(std::int32_t v) { return Bits{} + v; }
inline Bits64 bits64(std::uint64_t v) { return Bits64{} + v; }

inline Bits bits_of(Packet<float> x) { return std::bit_cast<Bits>(x.raw); }
inline Bits64 bits_of(Packet<double> x) { return std::bit_cast<Bits64>(x.raw); }
inline Packet<float> from_bits(Bits b) { return {std::bit_cast<RawPacket<float>>(b)}; }
inline Packet<double> from_bits(Bits64 b) { return {std::bit_cast<RawPacket<double>>(b)}; }

using FloatLanes [[gnu::vector_size(sizeof(Bits))]] = float;
using DoubleLanes [[gnu::vector_size(sizeof(Bits64))]] = double;

inline Packet<float> to_floats(Bits b) {
  return {std::bit_cast<RawPacket<float>>(__builtin_convertvector(b, FloatLanes))};
}
/// Of whole numbers below 2^31.
inline Bits to_bits(Packet<float> x) { return __builtin_convertvector(std::bit_cast<FloatLanes>(x.raw), Bits); }

/// How many packets of doubles hold one of floats: two, or one where packets have one lane.
inline constexpr int kDoubles = kLanes<float> / kLanes<double>;
/// The floats of a packet in doubles.
struct Doubles {
  Packet<double> at[kDoubles];
};
using FloatPart [[gnu::vector_size(sizeof(Bits64) / 2)]] = float;

template <int first, int... lane>
[[gnu::always_inline]] inline Packet<double> widened(FloatLanes x, std::integer_sequence<int, lane...>) {
  const FloatPart part = __builtin_shufflevector(x, x, (first + lane)...);
#if defined(__AVX512F__)
  return {_mm512_cvtps_pd(part)};
#elif defined(__AVX__)
  return {_mm256_cvtps_pd(part)};  // g++ 12 takes four instructions for its own conversion
#else
  return {std::bit_cast<RawPacket<double>>(__builtin_convertvector(part, DoubleLanes))};
#endif
}
inline Doubles to_doubles(Packet<float> x) {
  constexpr std::make_integer_sequence<int, kLanes<double>> lanes;
  const auto all = std::bit_cast<FloatLanes>(x.raw);
  Doubles y;
  y.at[0] = widened<0>(all, lanes);
  y.at[kDoubles - 1] = widened<(kDoubles - 1) * kLanes<double>>(all, lanes);
  return y;
}
template <int... lane>
[[gnu::always_inline]] inline Packet<float> joined(FloatPart a, FloatPart b, std::integer_sequence<int, lane...>) {
  return {std::bit_cast<RawPacket<float>>(__builtin_shufflevector(a, b, lane...))};
}
/// Rounds them to floats.
inline Packet<float> to_floats(const Doubles& x) {
  const auto part = [&](int i) { return __builtin_convertvector(std::bit_cast<DoubleLanes>(x.at[i].raw), FloatPart); };
  return joined(part(0), part(kDoubles - 1), std::make_integer_sequence<int, kLanes<float>>{});
}

}  // namespace ferrite::detail::FERRITE_LEVEL
