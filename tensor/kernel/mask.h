#pragma once
/// What comparisons of packets give, lane by lane, and the choice between packets by it. With AVX-512 a comparison
/// gives one bit for each lane; elsewhere a packet of all ones or all zeros. (Eigen makes such packets everywhere, and
/// bits of them again where it chooses.)
#include <Eigen/Core>
#include <limits>
#include <type_traits>

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {

namespace ei = Eigen::internal;

template <class T>
using RawPacket = typename ei::packet_traits<T>::type;

/// Lanes of a packet of T (float or double).
template <class T>
inline constexpr int kLanes = ei::unpacket_traits<RawPacket<T>>::size;

#ifdef __AVX512F__

template <class T>
struct Mask {
  std::conditional_t<kLanes<T> == 16, __mmask16, __mmask8> raw;
  friend Mask operator|(Mask a, Mask b) { return {static_cast<decltype(raw)>(a.raw | b.raw)}; }
  friend Mask operator&(Mask a, Mask b) { return {static_cast<decltype(raw)>(a.raw & b.raw)}; }
};

template <int kPredicate>
Mask<float> compared(__m512 a, __m512 b) {
  return {_mm512_cmp_ps_mask(a, b, kPredicate)};
}
template <int kPredicate>
Mask<double> compared(__m512d a, __m512d b) {
  return {_mm512_cmp_pd_mask(a, b, kPredicate)};
}
template <class P>
auto less(P a, P b) {
  return compared<_CMP_LT_OQ>(a, b);
}
template <class P>
auto less_equal(P a, P b) {
  return compared<_CMP_LE_OQ>(a, b);
}
template <class P>
auto equal(P a, P b) {
  return compared<_CMP_EQ_OQ>(a, b);
}
template <class P>
auto not_less_equal(P a, P b) {
  return compared<_CMP_NLE_UQ>(a, b);
}
template <class P>
auto unordered(P a) {
  return compared<_CMP_UNORD_Q>(a, a);
}
inline __m512 chosen(Mask<float> m, __m512 a, __m512 b) { return _mm512_mask_blend_ps(m.raw, b, a); }
inline __m512d chosen(Mask<double> m, __m512d a, __m512d b) { return _mm512_mask_blend_pd(m.raw, b, a); }
inline __m512 masked(Mask<float> m, __m512 a) { return _mm512_maskz_mov_ps(m.raw, a); }
inline __m512d masked(Mask<double> m, __m512d a) { return _mm512_maskz_mov_pd(m.raw, a); }
template <class T>
bool any(Mask<T> m) {
  return m.raw != 0;
}
template <class T>
bool all(Mask<T> m) {
  return m.raw == static_cast<decltype(m.raw)>(~0U);
}

#else

template <class T>
struct Mask {
  RawPacket<T> raw;
  friend Mask operator|(Mask a, Mask b) { return {ei::por(a.raw, b.raw)}; }
  friend Mask operator&(Mask a, Mask b) { return {ei::pand(a.raw, b.raw)}; }
};

template <class P>
using MaskOf = Mask<typename ei::unpacket_traits<P>::type>;
template <class P>
MaskOf<P> less(P a, P b) {
  return {ei::pcmp_lt(a, b)};
}
template <class P>
MaskOf<P> less_equal(P a, P b) {
  return {ei::pcmp_le(a, b)};
}
template <class P>
MaskOf<P> equal(P a, P b) {
  return {ei::pcmp_eq(a, b)};
}
template <class P>
MaskOf<P> not_less_equal(P a, P b) {
  return {ei::pcmp_lt_or_nan(b, a)};
}
template <class P>
MaskOf<P> unordered(P a) {
  using T = typename ei::unpacket_traits<P>::type;
  return {ei::pcmp_lt_or_nan(a, ei::pset1<P>(-std::numeric_limits<T>::infinity()))};
}
template <class M, class P>
P chosen(M m, P a, P b) {
  return ei::pselect(m.raw, a, b);
}
template <class M, class P>
P masked(M m, P a) {
  return ei::pand(m.raw, a);
}
template <class T>
bool any(Mask<T> m) {
  return ei::predux_any(m.raw);
}
template <class T>
bool all(Mask<T> m) {
  const RawPacket<T> one = ei::pset1<RawPacket<T>>(T(1)), zero = ei::pset1<RawPacket<T>>(T(0));
  return !any(equal(ei::pand(m.raw, one), zero));
}

#endif

}  // namespace ferrite::detail::FERRITE_LEVEL
