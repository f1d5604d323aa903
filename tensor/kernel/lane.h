#pragma once
/// One number of any dtype with the arithmetic of packets, for what packets do not hold: integers, bool, comparisons.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The arithmetic of packets (packet.h) for integers and bool: a packet of one, in loops that the compiler vectorises.
template <class T>
struct Lane {
  using Element = T;
  T v;

  Lane() = default;
  constexpr Lane(T x) : v(x) {}

  // Integer arithmetic wraps, as NumPy's does: computed unsigned, where overflow is defined.
  friend Lane operator+(Lane a, Lane b) { return wrap(bits(a) + bits(b)); }
  friend Lane operator-(Lane a, Lane b) { return wrap(bits(a) - bits(b)); }
  friend Lane operator*(Lane a, Lane b) { return wrap(bits(a) * bits(b)); }
  friend Lane operator-(Lane a) { return wrap(std::uint64_t{0} - bits(a)); }
  friend bool operator<(Lane a, Lane b) { return a.v < b.v; }
  friend bool operator<=(Lane a, Lane b) { return a.v <= b.v; }
  friend bool operator>(Lane a, Lane b) { return a.v > b.v; }
  friend bool operator>=(Lane a, Lane b) { return a.v >= b.v; }
  friend bool operator==(Lane a, Lane b) { return a.v == b.v; }

 private:
  static std::uint64_t bits(Lane a) { return static_cast<std::uint64_t>(a.v); }
  static Lane wrap(std::uint64_t b) { return Lane(static_cast<T>(b)); }
};

template <class T>
Lane<T> select(bool m, Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return m ? a : b;
}
template <class T>
Lane<T> abs(Lane<T> x) {
  return x.v < 0 ? -x : x;
}
template <class T>
Lane<T> max(Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return a.v > b.v ? a : b;
}
template <class T>
Lane<T> min(Lane<T> a, std::type_identity_t<Lane<T>> b) {
  return a.v < b.v ? a : b;
}
// Division of integers; where the C++ operators have no value: of a divisor 0 0, of -1 wrapped.
template <class T>
Lane<T> fmod(Lane<T> a, Lane<T> b) {
  return b.v == 0 || b.v == -1 ? T(0) : static_cast<T>(a.v % b.v);
}
/// Whether a rest is not 0 and has not the divisor's sign.
template <class T>
bool crosses(Lane<T> rest, Lane<T> b) {
  return rest.v != 0 && (rest.v < 0) != (b.v < 0);
}
template <class T>
Lane<T> remainder(Lane<T> a, Lane<T> b) {
  const Lane<T> rest = fmod(a, b);
  return crosses(rest, b) ? rest + b : rest;
}
template <class T>
Lane<T> floor_divide(Lane<T> a, Lane<T> b) {
  const Lane<T> quotient = b.v == 0 ? T(0) : b.v == -1 ? (-a).v : static_cast<T>(a.v / b.v);
  return crosses(fmod(a, b), b) ? quotient - Lane<T>(T(1)) : quotient;
}

}  // namespace ferrite::detail::FERRITE_LEVEL
