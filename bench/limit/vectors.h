#pragma once
/// Vectors of sixteen floats: storage, logistic function, tanh.
#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace limit {

using Index = std::ptrdiff_t;

inline Index padded(Index n, Index to) { return (n + to - 1) / to * to; }

/// Memory of n zeros, aligned to 64 bytes.
class Buffer {
 public:
  explicit Buffer(Index n)
      : p_(static_cast<float*>(std::aligned_alloc(64, static_cast<std::size_t>(padded(n, 16) + 16) * sizeof(float)))) {
    std::fill_n(p_.get(), padded(n, 16) + 16, 0.0F);
  }
  operator float*() { return p_.get(); }
  operator const float*() const { return p_.get(); }

 private:
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  std::unique_ptr<float[], Free> p_;
};

/// Returns e^x as 2^n p(r) with |r| <= ln(2) / 2: an error of about 1 ULP.
inline __m512 exp(__m512 x) {
  x = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-87.5F)), _mm512_set1_ps(88.7F));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(1.9875691500e-4F), r, _mm512_set1_ps(1.3981999507e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1F));
  p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
  return _mm512_scalef_ps(_mm512_add_ps(p, _mm512_set1_ps(1.0F)), n);
}

inline __m512 sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F);
  return _mm512_div_ps(one, _mm512_add_ps(one, exp(_mm512_sub_ps(_mm512_setzero_ps(), x))));
}

/// Returns tanh by a rational function of degrees 13 and 6, clamped at 7.9: a few ULP everywhere.
inline __m512 tanh(__m512 x) {
  const __m512 c = _mm512_set1_ps(7.90531110763549805F);
  x = _mm512_min_ps(_mm512_max_ps(x, _mm512_sub_ps(_mm512_setzero_ps(), c)), c);
  const __m512 s = _mm512_mul_ps(x, x);
  __m512 p = _mm512_fmadd_ps(s, _mm512_set1_ps(-2.76076847742355e-16F), _mm512_set1_ps(2.00018790482477e-13F));
  p = _mm512_fmadd_ps(s, p, _mm512_set1_ps(-8.60467152213735e-11F));
  p = _mm512_fmadd_ps(s, p, _mm512_set1_ps(5.12229709037114e-08F));
  p = _mm512_fmadd_ps(s, p, _mm512_set1_ps(1.48572235717979e-05F));
  p = _mm512_fmadd_ps(s, p, _mm512_set1_ps(6.37261928875436e-04F));
  p = _mm512_fmadd_ps(s, p, _mm512_set1_ps(4.89352455891786e-03F));
  __m512 q = _mm512_fmadd_ps(s, _mm512_set1_ps(1.19825839466702e-06F), _mm512_set1_ps(1.18534705686654e-04F));
  q = _mm512_fmadd_ps(s, q, _mm512_set1_ps(2.26843463243900e-03F));
  q = _mm512_fmadd_ps(s, q, _mm512_set1_ps(4.89352518554385e-03F));
  return _mm512_div_ps(_mm512_mul_ps(x, p), q);
}

/// Transposes a block of 16 by 16.
inline void transpose16(const float* from, Index from_row, float* to, Index to_row) {
  __m512 r[16];
  __m512 t[16];
#pragma GCC unroll 16
  for (Index i = 0; i < 16; ++i) r[i] = _mm512_loadu_ps(from + i * from_row);
#pragma GCC unroll 8
  for (Index i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  const auto low = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
  const auto high = [](__m512 a, __m512 b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  };
#pragma GCC unroll 4
  for (Index i = 0; i < 4; ++i) {
    r[4 * i] = low(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = high(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = low(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = high(t[4 * i + 1], t[4 * i + 3]);
  }
#pragma GCC unroll 4
  for (Index i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
#pragma GCC unroll 4
  for (Index i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
    r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
  }
#pragma GCC unroll 16
  for (Index i = 0; i < 16; ++i) _mm512_storeu_ps(to + i * to_row, r[i]);
}

}  // namespace limit
