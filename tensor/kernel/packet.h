#pragma once
/// One packet of numbers (16, 8 or 4 floats, by instruction set) with the arithmetic that pointwise operations are
/// written in. Every function is applied to whole packets only, so a value does not depend on its place in a run
/// (docs/numerics.md, rule 1).
///
/// Functions are in packet_exp.h, packet_log.h, packet_trigonometry.h, packet_math.h and packet_bits.h, which state
/// their errors. They consist of operations that IEEE 754 defines, in one order: with a multiply-add that rounds once
/// (AVX2, AVX-512, NEON) their bits are the same on every processor and do not depend on any library. In f64, error
/// functions and inverse trigonometric and hyperbolic functions are the C library's, lane by lane.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <type_traits>

#include "ferrite/tensor/kernel/mask.h"

namespace ferrite::detail::FERRITE_LEVEL {

template <class T>
struct Packet {
  using Element = T;
  static constexpr int width = kLanes<T>;
  RawPacket<T> raw;

  Packet() = default;
  Packet(RawPacket<T> r) : raw(r) {}
  Packet(T v) : raw(set_raw(v)) {}

  static Packet load(const T* p) { return load_raw(p); }
  void store(T* p) const { store_raw(p, raw); }

  friend Packet operator+(Packet a, Packet b) { return a.raw + b.raw; }
  friend Packet operator-(Packet a, Packet b) { return a.raw - b.raw; }
  friend Packet operator*(Packet a, Packet b) { return a.raw * b.raw; }
  friend Packet operator/(Packet a, Packet b) { return a.raw / b.raw; }
  friend Packet operator-(Packet a) { return -a.raw; }  // the sign bit is inverted, of zeros too
  friend Mask<T> operator<(Packet a, Packet b) { return less(a.raw, b.raw); }
  friend Mask<T> operator<=(Packet a, Packet b) { return less_equal(a.raw, b.raw); }
  friend Mask<T> operator>(Packet a, Packet b) { return less(b.raw, a.raw); }
  friend Mask<T> operator>=(Packet a, Packet b) { return less_equal(b.raw, a.raw); }
  friend Mask<T> operator==(Packet a, Packet b) { return equal(a.raw, b.raw); }
};

template <class T>
Packet<T> select(Mask<T> m, Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return chosen(m, a.raw, b.raw);
}
/// Returns a, or +0 where the mask is false: cheaper than a select.
template <class T>
Packet<T> or_zero(Mask<T> m, Packet<T> a) {
  return masked(m, a.raw);
}
template <class T>
Mask<T> is_nan(Packet<T> x) {
  return unordered(x.raw);
}
template <class T>
Mask<T> greater_or_nan(Packet<T> a, Packet<T> b) {
  return not_less_equal(a.raw, b.raw);
}
/// Returns a * b + c, rounded once where the machine has such an instruction.
template <class T>
Packet<T> fma(Packet<T> a, std::type_identity_t<Packet<T>> b, std::type_identity_t<Packet<T>> c) {
  return fma_raw(a.raw, b.raw, c.raw);
}

/// Returns c[0] + c[1] z + c[2] z^2 + ...
template <class T, class C, std::size_t N>
[[gnu::always_inline]] inline Packet<T> polynomial(Packet<T> z, const C (&c)[N]) {
  Packet<T> p = T(c[N - 1]);
#pragma GCC unroll 16
  for (std::size_t k = 1; k < N; ++k) p = fma(p, z, T(c[N - 1 - k]));
  return p;
}

/// Stores the first n elements of a packet.
template <class T>
inline void put(T* to, Packet<T> v, std::int64_t n) {
  if (n == kLanes<T>) return v.store(to);
#if defined(__AVX512F__)
  store_raw(to, v.raw, static_cast<LaneMask<T>>((1U << n) - 1));
#elif defined(__AVX2__)
  const auto first = lane_numbers<T>() < static_cast<decltype(RawBits<T>{}[0] + 0)>(n);
  store_raw(to, v.raw, std::bit_cast<LaneMask<T>>(first));
#else
  alignas(64) T part[static_cast<std::size_t>(kLanes<T>)];
  v.store(part);
  std::memcpy(to, part, static_cast<std::size_t>(n) * sizeof(T));
#endif
}

/// Applies f lane by lane.
#ifdef FERRITE_WRITTEN
template <class T, class F>
Packet<T> by_lane(Packet<T> x, F f) {
  return by_lane_raw(x.raw, f);
}
template <class T, class F>
Packet<T> by_lane(Packet<T> x, Packet<T> y, F f) {
  return by_lane_raw(x.raw, y.raw, f);
}
#else
template <class T, class F>
Packet<T> by_lane(Packet<T> x, F f) {
  alignas(64) T v[static_cast<std::size_t>(kLanes<T>)];
  x.store(v);
  for (T& e : v) e = f(e);
  return Packet<T>::load(v);
}
template <class T, class F>
Packet<T> by_lane(Packet<T> x, Packet<T> y, F f) {
  alignas(64) T v[static_cast<std::size_t>(kLanes<T>)];
  alignas(64) T w[static_cast<std::size_t>(kLanes<T>)];
  x.store(v);
  y.store(w);
  for (std::size_t i = 0; i < static_cast<std::size_t>(kLanes<T>); ++i) v[i] = f(v[i], w[i]);
  return Packet<T>::load(v);
}
#endif
/// Defines a function of one lane with a name, by which it can be printed in C (exchange/freeze): here one of the C
/// library.
#define FERRITE_NUMBER_FUNCTION(Name, function)      \
  struct Name {                                      \
    static constexpr const char* c_name = #function; \
    template <class... T>                            \
    auto operator()(T... v) const {                  \
      return std::function(v...);                    \
    }                                                \
  };
FERRITE_NUMBER_FUNCTION(ErfNumber, erf)
FERRITE_NUMBER_FUNCTION(ErfcNumber, erfc)
FERRITE_NUMBER_FUNCTION(FmodNumber, fmod)

// ---- functions of both widths --------------------------------------------------------------------------

template <class T>
Packet<T> abs(Packet<T> x) {
  return without_raw(set_raw(T(-0.0)), x.raw);
}
/// Returns the larger, or NaN if either is NaN (the machine's own instruction returns the second operand).
template <class T>
Packet<T> max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a > b, a, select(is_nan(a), a, b));
}
template <class T>
Packet<T> min(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a < b, a, select(is_nan(a), a, b));
}
/// Returns the machine's own maximum, which keeps a NaN in the first operand.
template <class T>
Packet<T> first_max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return max_raw(a.raw, b.raw);
}
/// Returns the machine's own minimum, which keeps a NaN in the first operand.
template <class T>
Packet<T> first_min(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return min_raw(a.raw, b.raw);
}
template <class T>
Packet<T> sqrt(Packet<T> x) {
  return sqrt_raw(x.raw);
}
template <class T>
Packet<T> copysign(Packet<T> magnitude, Packet<T> sign) {
  const RawPacket<T> bit = set_raw(T(-0.0));
  return or_raw(without_raw(bit, magnitude.raw), and_raw(sign.raw, bit));
}

// ---- f64: the C library --------------------------------------------------------------------------------

inline Packet<double> erf(Packet<double> x) { return by_lane(x, ErfNumber()); }
inline Packet<double> erfc(Packet<double> x) { return by_lane(x, ErfcNumber()); }

}  // namespace ferrite::detail::FERRITE_LEVEL
