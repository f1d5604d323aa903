#pragma once
/// One packet of numbers (16, 8 or 4 floats, by instruction set) with the arithmetic that pointwise operations are
/// written in. Wraps Eigen's packets; every function is applied to whole packets only, so a value does not depend on its
/// place in a run (docs/numerics.md, rule 1).
///
/// Functions of f32 are in packet_exp.h, packet_log.h, packet_pow.h, packet_trigonometry.h, packet_math.h,
/// packet_error.h and packet_rounding.h, which state their errors. They consist of operations that IEEE 754 defines, in
/// one order: with a multiply-add that rounds once (AVX2, AVX-512, NEON) their bits are the same on every processor, and
/// no library has a say in them. Functions of f64 are the C library's, lane by lane: tanh is off by 2 ULP, sigmoid by 3.
#include <Eigen/Core>
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
  Packet(RawPacket<T> r) requires(!std::is_same_v<RawPacket<T>, T>) : raw(r) {}
  Packet(T v) : raw(ei::pset1<RawPacket<T>>(v)) {}

  static Packet load(const T* p) { return ei::ploadu<RawPacket<T>>(p); }
  void store(T* p) const { ei::pstoreu(p, raw); }

  friend Packet operator+(Packet a, Packet b) { return ei::padd(a.raw, b.raw); }
  friend Packet operator-(Packet a, Packet b) { return ei::psub(a.raw, b.raw); }
  friend Packet operator*(Packet a, Packet b) { return ei::pmul(a.raw, b.raw); }
  friend Packet operator/(Packet a, Packet b) { return ei::pdiv(a.raw, b.raw); }
  /// The sign bit turned over, of zeros too (Eigen's takes wide packets from 0), or a multiply-add that subtracts.
  friend Packet operator-(Packet a) {
    if constexpr (std::is_floating_point_v<T>) {
      return RawPacket<T>(-a.raw);
    } else {
      return ei::pnegate(a.raw);
    }
  }
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
/// a, or +0 where the mask is false: cheaper than to choose it.
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
/// Whether the machine has an instruction that rounds a * b + c once (x86: FMA; aarch64 always).
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kRoundsOnce = true;
#else
inline constexpr bool kRoundsOnce = false;
#endif
/// a * b + c, in one rounding where the machine has such an instruction.
template <class T>
Packet<T> fma(Packet<T> a, std::type_identity_t<Packet<T>> b, std::type_identity_t<Packet<T>> c) {
  return ei::pmadd(a.raw, b.raw, c.raw);
}

/// c[0] + c[1] z + c[2] z^2 + ...
template <class T, class C, std::size_t N>
[[gnu::always_inline]] inline Packet<T> polynomial(Packet<T> z, const C (&c)[N]) {
  Packet<T> p = T(c[N - 1]);
#pragma GCC unroll 16
  for (std::size_t k = 1; k < N; ++k) p = fma(p, z, T(c[N - 1 - k]));
  return p;
}

/// Stores the first n elements.
template <class T>
inline void put(T* to, Packet<T> v, std::int64_t n) {
  using Traits = ei::unpacket_traits<RawPacket<T>>;
  if (n == kLanes<T>) return v.store(to);
  if constexpr (requires { requires bool(Traits::masked_store_available); }) {
    using Bits = std::conditional_t<kLanes<T> == 16, std::uint16_t, std::uint8_t>;
    ei::pstoreu(to, v.raw, static_cast<Bits>((1U << n) - 1));
  } else {
    alignas(64) T part[static_cast<std::size_t>(kLanes<T>)];
    v.store(part);
    std::memcpy(to, part, static_cast<std::size_t>(n) * sizeof(T));
  }
}

/// f applied lane by lane.
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

// ---- functions of both widths --------------------------------------------------------------------------

template <class T>
Packet<T> abs(Packet<T> x) {
  return ei::pabs(x.raw);
}
/// NaN if either is NaN (the machine's own instruction takes the second operand).
template <class T>
Packet<T> max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a > b, a, select(is_nan(a), a, b));
}
template <class T>
Packet<T> min(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return select(a < b, a, select(is_nan(a), a, b));
}
/// The machine's own maximum, which keeps a NaN that is its first operand.
template <class T>
Packet<T> first_max(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return ei::pmax(a.raw, b.raw);
}
/// The machine's own minimum, which keeps a NaN that is its first operand.
template <class T>
Packet<T> first_min(Packet<T> a, std::type_identity_t<Packet<T>> b) {
  return ei::pmin(a.raw, b.raw);
}
template <class T>
Packet<T> sqrt(Packet<T> x) {
  return by_lane(x, [](T v) { return std::sqrt(v); });  // a true square root, vectorised by the compiler
}
template <class T>
Packet<T> copysign(Packet<T> magnitude, Packet<T> sign) {
  const RawPacket<T> bit = ei::pset1<RawPacket<T>>(T(-0.0));
  return ei::por(ei::pandnot(magnitude.raw, bit), ei::pand(sign.raw, bit));
}

// ---- f64: the C library --------------------------------------------------------------------------------

inline Packet<double> exp(Packet<double> x) {
  return by_lane(x, [](double v) { return std::exp(v); });
}
inline Packet<double> exp2(Packet<double> x) {
  return by_lane(x, [](double v) { return std::exp2(v); });
}
inline Packet<double> expm1(Packet<double> x) {
  return by_lane(x, [](double v) { return std::expm1(v); });
}
inline Packet<double> log(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log(v); });
}
inline Packet<double> log1p(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log1p(v); });
}
inline Packet<double> log2(Packet<double> x) {
  return by_lane(x, [](double v) { return std::log2(v); });
}
inline Packet<double> sin(Packet<double> x) {
  return by_lane(x, [](double v) { return std::sin(v); });
}
inline Packet<double> cos(Packet<double> x) {
  return by_lane(x, [](double v) { return std::cos(v); });
}
inline Packet<double> sigmoid(Packet<double> x) { return Packet<double>(1.0) / (Packet<double>(1.0) + exp(-x)); }
inline Packet<double> tanh(Packet<double> x) {
  return by_lane(x, [](double v) { return std::tanh(v); });
}
inline Packet<double> erf(Packet<double> x) {
  return by_lane(x, [](double v) { return std::erf(v); });
}
inline Packet<double> erfc(Packet<double> x) {
  return by_lane(x, [](double v) { return std::erfc(v); });
}
inline Packet<double> pow(Packet<double> x, Packet<double> y) {
  return by_lane(x, y, [](double a, double b) { return std::pow(a, b); });
}

}  // namespace ferrite::detail::FERRITE_LEVEL
