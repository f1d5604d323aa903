#pragma once
/// Floats of 16 bits that tensors store: bfloat16 and float16, with their conversions.
#include <bit>
#include <concepts>
#include <cstdint>

#include "ferrite/tensor/language.h"

namespace ferrite {
namespace detail {

/// The layout of IEEE numbers of 32 and 64 bits.
template <class Float>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  using Bits = std::uint32_t;
  static constexpr int mantissa = 23, bias = 127;
};
template <>
struct FloatFormat<double> {
  using Bits = std::uint64_t;
  static constexpr int mantissa = 52, bias = 1023;
};

/// A number of 16 bits in the format of IEEE 754: a sign, `Exponent` and `Mantissa` bits. It converts and compares but
/// does not compute. Conversions work on bits only, independent of how the processor treats denormals. They are inlined
/// everywhere, since kernels of several instruction sets must not share functions.
template <int Exponent, int Mantissa>
class SmallFloat {
  static_assert(1 + Exponent + Mantissa == 16);

 public:
  SmallFloat() = default;
  /// Rounds to the nearest number, ties to even, in one step; gives infinity beyond the range, and denormals where due.
  /// NaN becomes a quiet NaN of the same sign.
  template <std::floating_point T>
  [[gnu::always_inline]] explicit constexpr SmallFloat(T v) : bits_(rounded(v)) {}
  template <std::integral T>
  [[gnu::always_inline]] explicit constexpr SmallFloat(T v) : bits_(rounded(exact(static_cast<std::int64_t>(v)))) {}

  /// Returns the number with these bits: the sign first, then exponent and mantissa.
  [[gnu::always_inline]] static constexpr SmallFloat from_bits(std::uint16_t bits) {
    SmallFloat v{};
    v.bits_ = bits;
    return v;
  }
  [[gnu::always_inline]] constexpr std::uint16_t bits() const { return bits_; }

  /// Converts to T: exact in float and double, NaN payloads included; to other types as a float converts.
  template <class T>
  requires std::floating_point<T> || std::integral<T>
  [[gnu::always_inline]] explicit constexpr operator T() const {
    if constexpr (std::is_same_v<T, bool>) {
      return (bits_ & 0x7fffU) != 0;
    } else if constexpr (std::is_same_v<T, double>) {
      return widened<double>();
    } else {
      return static_cast<T>(widened<float>());
    }
  }

  /// Compares as numbers: 0 equals -0, and NaN equals nothing.
  [[gnu::always_inline]] friend constexpr bool operator==(SmallFloat a, SmallFloat b) {
    const bool numbers = (a.bits_ & 0x7fffU) <= kInfinity && (b.bits_ & 0x7fffU) <= kInfinity;
    return numbers && (a.bits_ == b.bits_ || ((a.bits_ | b.bits_) & 0x7fffU) == 0);
  }

 private:
  static constexpr int kBias = (1 << (Exponent - 1)) - 1;
  static constexpr std::uint16_t kInfinity = ((1U << Exponent) - 1) << Mantissa;

  template <class T>
  [[gnu::always_inline]] static constexpr std::uint16_t rounded(T v) {
    using Format = FloatFormat<T>;
    using Bits = typename Format::Bits;
    constexpr int kWidth = 8 * sizeof(Bits);
    constexpr Bits kHidden = Bits{1} << Format::mantissa;
    constexpr int kLeast = 1 - kBias + Format::bias;  // exponent field of the smallest normal number
    constexpr int kDropped = Format::mantissa - Mantissa;
    constexpr Bits kInfinite = ~Bits{0} >> (Format::mantissa + 1) << Format::mantissa;
    const Bits all = std::bit_cast<Bits>(v);
    const auto sign = static_cast<std::uint16_t>(all >> (kWidth - 16) & 0x8000U);
    const Bits size = all & (~Bits{0} >> 1);
    if (size > kInfinite) {
      constexpr unsigned kQuiet = 1U << (Mantissa - 1);
      return static_cast<std::uint16_t>(sign | kInfinity | kQuiet |
                                        (static_cast<unsigned>(size >> kDropped) & (kQuiet - 1)));
    }
    const int field = static_cast<int>(size >> Format::mantissa);
    Bits whole = size - (static_cast<Bits>(kLeast - 1) << Format::mantissa);
    int dropped = kDropped;
    if (field < kLeast) {  // a denormal: the hidden bit is written, and as many bits less
      whole = (size & (kHidden - 1)) | (field > 0 ? kHidden : 0);
      const int further = kLeast - (field > 0 ? field : 1);
      dropped = further < Mantissa + 2 ? kDropped + further : Format::mantissa + 2;
    }
    const Bits even = whole >> dropped & 1;
    const Bits result = (whole + (Bits{1} << (dropped - 1)) - 1 + even) >> dropped;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(result < kInfinity ? result : kInfinity));
  }

  /// Returns a double that rounds as the integer does. Where a double cannot hold all bits, its last bit says whether
  /// any lower one was set.
  [[gnu::always_inline]] static constexpr double exact(std::int64_t v) {
    const std::uint64_t size = v < 0 ? 0 - static_cast<std::uint64_t>(v) : static_cast<std::uint64_t>(v);
    if (size >> 53 == 0) return static_cast<double>(v);
    const std::uint64_t odd = (size & ~std::uint64_t{0x7ff}) | ((size & 0x7ff) != 0 ? 0x800U : 0U);
    return v < 0 ? -static_cast<double>(odd) : static_cast<double>(odd);
  }

  template <class F>
  [[gnu::always_inline]] constexpr F widened() const {
    using Format = FloatFormat<F>;
    using Bits = typename Format::Bits;
    constexpr int kAdded = Format::mantissa - Mantissa;
    const Bits sign = static_cast<Bits>(bits_ & 0x8000U) << (8 * sizeof(Bits) - 16);
    const Bits size = bits_ & 0x7fffU;
    if constexpr (kBias == Format::bias) {
      return std::bit_cast<F>(sign | (size << kAdded));
    } else {
      constexpr Bits kRebias = Format::bias - kBias;
      constexpr Bits kInfinite = ~Bits{0} >> (Format::mantissa + 1) << Format::mantissa;
      if (size >= kInfinity) return std::bit_cast<F>(sign | kInfinite | (size << kAdded));
      if (size >> Mantissa != 0) return std::bit_cast<F>(sign | ((size << kAdded) + (kRebias << Format::mantissa)));
      // A denormal here is a normal number there.
      constexpr F kUnit = std::bit_cast<F>(static_cast<Bits>(Format::bias + 1 - kBias - Mantissa) << Format::mantissa);
      const F v = static_cast<F>(size) * kUnit;
      return sign != 0 ? -v : v;
    }
  }

  std::uint16_t bits_;
};

}  // namespace detail

/// The upper half of a float: 8 bits of exponent, 7 of mantissa.
using bfloat16 = detail::SmallFloat<8, 7>;
/// IEEE binary16: 5 bits of exponent, 10 of mantissa; the largest number is 65504.
using float16 = detail::SmallFloat<5, 10>;

}  // namespace ferrite
