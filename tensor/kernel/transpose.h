#pragma once
/// Squares of a matrix transposed in registers, for products whose right matrix is stored by columns.
#include <cstdint>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Loads as many rows as a packet has lanes, `depth` elements of each, as `depth` packets; packet k holds element k of
/// every row. `from` is the first element of the first row, `step` the distance of rows.
template <class T>
struct Slab {
  static constexpr int depth = kLanes<T>;
  static void load(const T* from, std::int64_t step, RawPacket<T> (&out)[static_cast<std::size_t>(depth)]) {
#pragma GCC unroll 8
    for (int i = 0; i < depth; ++i) out[i] = load_raw(from + i * step);
    transpose_raw(out);
  }
};

#ifdef __AVX__
/// Transposes squares of four by four in each 128-bit part: on entry the parts of packet i hold four elements of one
/// row each, on return packet k holds element k of these rows. This takes half of the shuffles of a transposition: the
/// loads do the rest.
template <class P>
[[gnu::always_inline]] inline void transpose_parts(P (&r)[4]) {
  if constexpr (sizeof(P) == 32) {
    const __m256d t0 = _mm256_castps_pd(_mm256_unpacklo_ps(r[0], r[1]));
    const __m256d t1 = _mm256_castps_pd(_mm256_unpackhi_ps(r[0], r[1]));
    const __m256d t2 = _mm256_castps_pd(_mm256_unpacklo_ps(r[2], r[3]));
    const __m256d t3 = _mm256_castps_pd(_mm256_unpackhi_ps(r[2], r[3]));
    r[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(t0, t2));
    r[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(t0, t2));
    r[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(t1, t3));
    r[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(t1, t3));
  }
#ifdef __AVX512F__
  if constexpr (sizeof(P) == 64) {
    const __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(r[0], r[1]));
    const __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(r[0], r[1]));
    const __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(r[2], r[3]));
    const __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(r[2], r[3]));
    r[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2));
    r[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2));
    r[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    r[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
  }
#endif
}
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__)
template <>
struct Slab<float> {
  static constexpr int depth = 8;
  [[gnu::always_inline]] static void load(const float* from, std::int64_t step, RawFloats (&out)[8]) {
    const auto two_rows = [&](const float* p) {
      return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(p)), _mm256_loadu_ps(p + 4 * step), 1);
    };
    const float* const below = from + 8 * step;
    RawFloats r[4] = {two_rows(from), two_rows(from + step), two_rows(from + 2 * step), two_rows(from + 3 * step)};
    RawFloats s[4] = {two_rows(below), two_rows(below + step), two_rows(below + 2 * step), two_rows(below + 3 * step)};
    transpose_parts(r);
    transpose_parts(s);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      out[k] = _mm512_shuffle_f32x4(r[k], s[k], 0x88);
      out[k + 4] = _mm512_shuffle_f32x4(r[k], s[k], 0xDD);
    }
  }
};
#elif defined(__AVX__)
template <>
struct Slab<float> {
  static constexpr int depth = 4;
  [[gnu::always_inline]] static void load(const float* from, std::int64_t step, RawFloats (&out)[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      out[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from + i * step)),
                                    _mm_loadu_ps(from + (i + 4) * step), 1);
    transpose_parts(out);
  }
};
#endif

/// Transposes a square of W by W elements: `from` has W rows, `from_step` apart; row k of the result goes to
/// to + k * to_step.
template <class T>
inline void transpose_square(const T* from, std::int64_t from_step, T* to, std::int64_t to_step) {
  constexpr int W = kLanes<T>, D = Slab<T>::depth;
  for (int k = 0; k < W; k += D) {
    RawPacket<T> slab[static_cast<std::size_t>(D)];
    Slab<T>::load(from + k, from_step, slab);
#pragma GCC unroll 16
    for (int i = 0; i < D; ++i) store_raw(to + (k + i) * to_step, slab[i]);
  }
}

}  // namespace ferrite::detail::FERRITE_LEVEL
