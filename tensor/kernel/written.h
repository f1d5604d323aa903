#pragma once
/// The register of the level `written`: not a vector of numbers but a symbol, on which arithmetic records an
/// expression. A functor applied to packets of symbols leaves the expression that exchange/freeze prints as a function
/// in C, so that kernels and printed functions have one source. vectors.h and mask.h include this in place of
/// themselves where FERRITE_WRITTEN is defined.
///
/// The level rounds multiply-adds once, as AVX2, AVX-512 and NEON do. No lane has a value while an expression is
/// recorded: `all` is false and `any` is true, so that both sides of a branch are recorded and selected between.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail {

/// The types of values of a printed function; integers and masks have the width of floats or of doubles.
enum class WrittenKind : std::uint8_t { floats, ints, float_mask, doubles, longs, double_mask };

/// The numbers of up to four operands; -1: none.
struct WrittenOperands {
  std::int32_t at[4] = {-1, -1, -1, -1};
  bool operator==(const WrittenOperands&) const = default;
};
constexpr WrittenOperands written_operands(std::int32_t a = -1, std::int32_t b = -1, std::int32_t c = -1,
                                           std::int32_t d = -1) {
  return {{a, b, c, d}};
}

/// One value of a printed function. `name` is the function that makes it, without its prefix and its suffix, which is
/// that of `suffix`; constants have `bits`, as have shifts.
struct WrittenNode {
  const char* name;
  WrittenKind kind, suffix;
  WrittenOperands operands{};
  std::uint64_t bits = 0;
  const char* lane = nullptr;  ///< the function of one lane that `by_lane` and `mended` apply; "": has no form in C
};
inline constexpr const char* kWrittenConstant = "set";

/// Records a value, unless an equal one was recorded, and returns its number.
std::int32_t record_written(const WrittenNode& node);
/// Returns whether a value is a constant, and its bits.
struct WrittenConstant {
  bool is_constant;
  std::uint64_t bits;
};
WrittenConstant written_constant(std::int32_t value);

namespace FERRITE_LEVEL {

inline constexpr int kVectorBytes = 8;
inline constexpr bool kRoundsOnce = true;
inline constexpr bool kRoundsToWhole = true;
template <class T>
inline constexpr int kLanes = 1;

/// A value of a printed function. Without an initializer it is 0.
template <WrittenKind kind>
struct Symbol {
  std::int32_t value;

  Symbol() : value(record_written({kWrittenConstant, kind, kind})) {}
  explicit Symbol(std::int32_t v) : value(v) {}
};
using RawFloats = Symbol<WrittenKind::floats>;
using RawDoubles = Symbol<WrittenKind::doubles>;
using Bits = Symbol<WrittenKind::ints>;
using Bits64 = Symbol<WrittenKind::longs>;

template <class T>
using RawPacket = std::conditional_t<sizeof(T) == 4, RawFloats, RawDoubles>;
template <class T>
using RawBits = std::conditional_t<sizeof(T) == 4, Bits, Bits64>;
template <class T>
using RawMask = Symbol<sizeof(T) == 4 ? WrittenKind::float_mask : WrittenKind::double_mask>;

/// Records a call of `name`, whose suffix is that of the kind `suffix`.
template <WrittenKind result, WrittenKind suffix, class... S>
Symbol<result> call_written(const char* name, S... operands) {
  return Symbol<result>(record_written({name, result, suffix, written_operands(operands.value...)}));
}
template <WrittenKind result, WrittenKind... k>
Symbol<result> lanes_written(const char* name, const char* lane, Symbol<k>... operands) {
  return Symbol<result>(record_written({name, result, result, written_operands(operands.value...), 0, lane}));
}
template <WrittenKind kind>
Symbol<kind> constant_written(std::uint64_t bits) {
  return Symbol<kind>(record_written({kWrittenConstant, kind, kind, {}, bits}));
}

inline RawFloats set_raw(float v) { return constant_written<WrittenKind::floats>(std::bit_cast<std::uint32_t>(v)); }
inline RawDoubles set_raw(double v) { return constant_written<WrittenKind::doubles>(std::bit_cast<std::uint64_t>(v)); }
inline Bits bits(std::int32_t v) { return constant_written<WrittenKind::ints>(static_cast<std::uint32_t>(v)); }
inline Bits64 bits64(std::uint64_t v) { return constant_written<WrittenKind::longs>(v); }

// ---- conversions ------------------------------------------------------------------------------------------

inline Bits raw_bits(RawFloats x) { return call_written<WrittenKind::ints, WrittenKind::floats>("bits", x); }
inline Bits64 raw_bits(RawDoubles x) { return call_written<WrittenKind::longs, WrittenKind::doubles>("bits", x); }
inline Bits64 raw_unsigned_bits(RawDoubles x) { return raw_bits(x); }
inline RawFloats raw_from_bits(Bits x) {
  return call_written<WrittenKind::floats, WrittenKind::floats>("from_bits", x);
}
inline RawDoubles raw_from_bits(Bits64 x) {
  return call_written<WrittenKind::doubles, WrittenKind::doubles>("from_bits", x);
}
inline RawFloats raw_to_floats(Bits x) { return call_written<WrittenKind::floats, WrittenKind::floats>("from_int", x); }
inline Bits raw_to_bits(RawFloats x) { return call_written<WrittenKind::ints, WrittenKind::floats>("to_int", x); }
/// Converts floats to doubles, of which there are as many, and rounds doubles to floats.
inline RawDoubles widen_raw(RawFloats x) { return call_written<WrittenKind::doubles, WrittenKind::floats>("widen", x); }
inline RawFloats narrow_raw(RawDoubles x) {
  return call_written<WrittenKind::floats, WrittenKind::doubles>("narrow", x);
}

/// Returns the name of the function of one lane that F is, "" if it has none.
template <class F>
constexpr const char* lane_name() {
  if constexpr (requires { F::c_name; }) {
    return F::c_name;
  } else {
    return "";
  }
}

// ---- arithmetic -------------------------------------------------------------------------------------------

#define FERRITE_ON_SYMBOLS(V, T, number, Int, is_sign)                                                               \
  inline V operator+(V a, V b) { return call_written<number, number>("add", a, b); }                                 \
  inline V operator-(V a, V b) { return call_written<number, number>("sub", a, b); }                                 \
  inline V operator*(V a, V b) { return call_written<number, number>("mul", a, b); }                                 \
  inline V operator/(V a, V b) { return call_written<number, number>("div", a, b); }                                 \
  inline V operator-(V a) {                                                                                          \
    const WrittenConstant c = written_constant(a.value);                                                             \
    return c.is_constant ? constant_written<number>(c.bits ^ (is_sign)) : call_written<number, number>("neg", a);    \
  }                                                                                                                  \
  inline V fma_raw(V a, V b, V c) { return call_written<number, number>("fma", a, b, c); }                           \
  inline V min_raw(V a, V b) { return call_written<number, number>("first_min", a, b); }                             \
  inline V max_raw(V a, V b) { return call_written<number, number>("first_max", a, b); }                             \
  inline V sqrt_raw(V x) { return call_written<number, number>("sqrt", x); }                                         \
  inline V scale_raw(V x, V n) { return call_written<number, number>("scale", x, n); }                               \
  inline V nearest_raw(V x) { return call_written<number, number>("nearest", x); }                                   \
  inline bool is_sign_bit(V a) {                                                                                     \
    const WrittenConstant c = written_constant(a.value);                                                             \
    return c.is_constant && c.bits == (is_sign);                                                                     \
  }                                                                                                                  \
  inline V and_raw(V a, V b) {                                                                                       \
    return is_sign_bit(b) ? call_written<number, number>("sign_bit", a) : call_written<number, number>("and", a, b); \
  }                                                                                                                  \
  inline V or_raw(V a, V b) { return call_written<number, number>("or", a, b); }                                     \
  inline V without_raw(V a, V b) {                                                                                   \
    return is_sign_bit(a) ? call_written<number, number>("abs", b) : call_written<number, number>("without", a, b);  \
  }                                                                                                                  \
  template <class F>                                                                                                 \
  V by_lane_raw(V x, F) {                                                                                            \
    return lanes_written<number>("by_lane", lane_name<F>(), x);                                                      \
  }                                                                                                                  \
  template <class F>                                                                                                 \
  V by_lane_raw(V x, V y, F) {                                                                                       \
    return lanes_written<number>("by_lane", lane_name<F>(), x, y);                                                   \
  }                                                                                                                  \
  template <class F, class... X>                                                                                     \
  V mended_raw(RawMask<T> usual, V y, F, X... x) {                                                                   \
    return lanes_written<number>("mended", lane_name<F>(), usual, y, x...);                                          \
  }

FERRITE_ON_SYMBOLS(RawFloats, float, WrittenKind::floats, Bits, 0x80000000U)
FERRITE_ON_SYMBOLS(RawDoubles, double, WrittenKind::doubles, Bits64, 0x8000000000000000U)
#undef FERRITE_ON_SYMBOLS

#define FERRITE_ON_SYMBOLS(V, kind)                                                                          \
  inline V operator+(V a, V b) { return call_written<kind, kind>("add", a, b); }                             \
  inline V operator-(V a, V b) { return call_written<kind, kind>("sub", a, b); }                             \
  inline V operator&(V a, V b) { return call_written<kind, kind>("and", a, b); }                             \
  inline V operator|(V a, V b) { return call_written<kind, kind>("or", a, b); }                              \
  inline V operator^(V a, V b) { return call_written<kind, kind>("xor", a, b); }                             \
  inline V operator<<(V a, int n) {                                                                          \
    return V(record_written({"shl", kind, kind, written_operands(a.value), static_cast<std::uint64_t>(n)})); \
  }                                                                                                          \
  inline V operator>>(V a, int n) {                                                                          \
    return V(record_written({"shr", kind, kind, written_operands(a.value), static_cast<std::uint64_t>(n)})); \
  }
FERRITE_ON_SYMBOLS(Bits, WrittenKind::ints)
FERRITE_ON_SYMBOLS(Bits64, WrittenKind::longs)
#undef FERRITE_ON_SYMBOLS

// ---- masks (mask.h) ----------------------------------------------------------------------------------------

template <class T>
struct Mask {
  RawMask<T> raw;
  friend Mask operator|(Mask a, Mask b) { return joined_masks("either", a, b); }
  friend Mask operator&(Mask a, Mask b) { return joined_masks("both", a, b); }

 private:
  static Mask joined_masks(const char* name, Mask a, Mask b) {
    constexpr WrittenKind kind = sizeof(T) == 4 ? WrittenKind::float_mask : WrittenKind::double_mask;
    constexpr WrittenKind number = sizeof(T) == 4 ? WrittenKind::floats : WrittenKind::doubles;
    return {call_written<kind, number>(name, a.raw, b.raw)};
  }
};

#define FERRITE_COMPARISONS(V, T, number, mask)                                                               \
  inline Mask<T> less(V a, V b) { return {call_written<mask, number>("is_less", a, b)}; }                     \
  inline Mask<T> less_equal(V a, V b) { return {call_written<mask, number>("is_less_equal", a, b)}; }         \
  inline Mask<T> equal(V a, V b) { return {call_written<mask, number>("is_equal", a, b)}; }                   \
  inline Mask<T> not_less_equal(V a, V b) { return {call_written<mask, number>("is_greater_or_nan", a, b)}; } \
  inline Mask<T> unordered(V a) { return {call_written<mask, number>("is_nan", a)}; }                         \
  inline V chosen(Mask<T> m, V a, V b) { return call_written<number, number>("select", m.raw, a, b); }        \
  inline V masked(Mask<T> m, V a) { return call_written<number, number>("or_zero", m.raw, a); }
FERRITE_COMPARISONS(RawFloats, float, WrittenKind::floats, WrittenKind::float_mask)
FERRITE_COMPARISONS(RawDoubles, double, WrittenKind::doubles, WrittenKind::double_mask)
#undef FERRITE_COMPARISONS

template <class T>
bool any(Mask<T>) {
  return true;
}
template <class T>
bool all(Mask<T>) {
  return false;
}

}  // namespace FERRITE_LEVEL
}  // namespace ferrite::detail
