#pragma once
/// Rounding of packets to whole numbers, and division with remainder: exact, of both widths.
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// y where the mask says so, else f of the operands, which is computed lane by lane: for rare ones.
template <class T, class F>
Packet<T> mended(Mask<T> usual, Packet<T> y, Packet<T> x, F f) {
  if (all(usual)) [[likely]]
    return y;
  return select(usual, y, by_lane(x, f));
}
template <class T, class F>
Packet<T> mended(Mask<T> usual, Packet<T> y, Packet<T> a, Packet<T> b, F f) {
  if (all(usual)) [[likely]]
    return y;
  return select(usual, y, by_lane(a, b, f));
}

/// To the nearest whole number, halves to even: what is added to 2^23 (2^52) is rounded to one.
template <class T>
Packet<T> nearest(Packet<T> x) {
  if constexpr (kRoundsToWhole) {
    return nearest_raw(x.raw);
  } else {
    const Packet<T> whole(T(1) / std::numeric_limits<T>::epsilon());  // from here on all are whole
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

/// a - b trunc(a / b). The quotient, rounded, is one too large at most; with one rounding a - b q is exact.
template <class T>
Packet<T> fmod(Packet<T> a, Packet<T> b) {
  const auto exact = [](T x, T y) { return std::fmod(x, y); };
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
/// The rest with the divisor's sign.
template <class T>
Packet<T> remainder(Packet<T> a, Packet<T> b) {
  using P = Packet<T>;
  const P r = fmod(a, b), zero(T(0));
  return r + or_zero(((r < zero) & (zero < b)) | ((zero < r) & (b < zero)), b);
}
/// Python's: the quotient of what is left without the rest, so that it is whole to a rounding.
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
