#pragma once
/// The results of comparing packets, lane by lane, and the selection between packets by them. With AVX-512 a comparison
/// gives one bit for each lane; elsewhere a vector of all ones or all zeros.
#include "ferrite/tensor/kernel/vectors.h"

#ifndef FERRITE_WRITTEN
namespace ferrite::detail::FERRITE_LEVEL {

#ifdef __AVX512F__

template <class T>
struct Mask {
  LaneMask<T> raw;
  friend Mask operator|(Mask a, Mask b) { return {static_cast<decltype(raw)>(a.raw | b.raw)}; }
  friend Mask operator&(Mask a, Mask b) { return {static_cast<decltype(raw)>(a.raw & b.raw)}; }
};

template <int kPredicate>
Mask<float> compared(RawFloats a, RawFloats b) {
  return {_mm512_cmp_ps_mask(a, b, kPredicate)};
}
template <int kPredicate>
Mask<double> compared(RawDoubles a, RawDoubles b) {
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
inline RawFloats chosen(Mask<float> m, RawFloats a, RawFloats b) { return _mm512_mask_blend_ps(m.raw, b, a); }
inline RawDoubles chosen(Mask<double> m, RawDoubles a, RawDoubles b) { return _mm512_mask_blend_pd(m.raw, b, a); }
inline RawFloats masked(Mask<float> m, RawFloats a) { return _mm512_maskz_mov_ps(m.raw, a); }
inline RawDoubles masked(Mask<double> m, RawDoubles a) { return _mm512_maskz_mov_pd(m.raw, a); }
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
  RawBits<T> raw;
  friend Mask operator|(Mask a, Mask b) { return {a.raw | b.raw}; }
  friend Mask operator&(Mask a, Mask b) { return {a.raw & b.raw}; }
};

#define FERRITE_COMPARISONS(V, T)                                 \
  inline Mask<T> less(V a, V b) { return {a < b}; }               \
  inline Mask<T> less_equal(V a, V b) { return {a <= b}; }        \
  inline Mask<T> equal(V a, V b) { return {a == b}; }             \
  inline Mask<T> not_less_equal(V a, V b) { return {~(a <= b)}; } \
  inline Mask<T> unordered(V a) { return {a != a}; }              \
  inline V chosen(Mask<T> m, V a, V b) { return m.raw ? a : b; }  \
  inline V masked(Mask<T> m, V a) { return and_raw(raw_from_bits(m.raw), a); }
FERRITE_COMPARISONS(RawFloats, float)
FERRITE_COMPARISONS(RawDoubles, double)
#undef FERRITE_COMPARISONS

/// Returns the sign bits of the lanes, lane i in bit i.
template <class T>
unsigned signs(Mask<T> m) {
#if defined(__AVX__)
  if constexpr (sizeof(T) == 4) return static_cast<unsigned>(_mm256_movemask_ps(raw_from_bits(m.raw)));
  if constexpr (sizeof(T) == 8) return static_cast<unsigned>(_mm256_movemask_pd(raw_from_bits(m.raw)));
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4) return static_cast<unsigned>(_mm_movemask_ps(raw_from_bits(m.raw)));
  if constexpr (sizeof(T) == 8) return static_cast<unsigned>(_mm_movemask_pd(raw_from_bits(m.raw)));
#else
  unsigned found = 0;
  for (int i = 0; i < kLanes<T>; ++i) found |= (m.raw[i] != 0 ? 1U : 0U) << i;
  return found;
#endif
}
template <class T>
bool any(Mask<T> m) {
  return signs(m) != 0;
}
template <class T>
bool all(Mask<T> m) {
  return signs(m) == (1U << kLanes<T>)-1;
}

#endif

}  // namespace ferrite::detail::FERRITE_LEVEL
#endif
