#pragma once
/// Products with matrices in panels of 48 adjacent columns (three vectors), stored row by row.
#include "vectors.h"

namespace limit {

inline constexpr Index kPanel = 48;

/// Packs `kc` rows of w [.., N] into panels of NV vectors; N is a multiple of their width.
template <unsigned NV = 3>
inline void pack(const float* w, Index kc, Index N, float* to) {
  constexpr Index kWidth = 16 * NV;
  for (Index j = 0; j < N; j += kWidth)
    for (Index k = 0; k < kc; ++k, to += kWidth) std::copy_n(w + k * N + j, kWidth, to);
}

/// Multiplies MR rows of A by one panel of NV vectors: c (+)= a b. Element (m, k) of A is a[m am + k ak].
template <unsigned MR, unsigned NV, bool add>
inline void micro(const float* a, Index am, Index ak, const float* b, Index K, float* c, Index c_row) {
  __m512 acc[MR][NV];
#pragma GCC unroll 16
  for (Index m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (Index v = 0; v < NV; ++v) acc[m][v] = _mm512_setzero_ps();
  for (Index k = 0; k < K; ++k, b += NV * 16, a += ak) {
    __m512 row[NV];
#pragma GCC unroll 16
    for (Index v = 0; v < NV; ++v) row[v] = _mm512_loadu_ps(b + v * 16);
#pragma GCC unroll 16
    for (Index m = 0; m < MR; ++m) {
      const __m512 x = _mm512_set1_ps(a[m * am]);
#pragma GCC unroll 16
      for (Index v = 0; v < NV; ++v) acc[m][v] = _mm512_fmadd_ps(x, row[v], acc[m][v]);
    }
  }
#pragma GCC unroll 16
  for (Index m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (Index v = 0; v < NV; ++v) {
      float* p = c + m * c_row + v * 16;
      _mm512_storeu_ps(p, add ? _mm512_add_ps(acc[m][v], _mm512_loadu_ps(p)) : acc[m][v]);
    }
}

/// Multiplies all M rows by one panel.
template <unsigned NV, bool add>
inline void panel_rows(const float* a, Index a_row, const float* b, Index M, Index K, float* c, Index c_row) {
  Index m = 0;
  for (; m + 8 <= M; m += 8) micro<8, NV, add>(a + m * a_row, a_row, 1, b, K, c + m * c_row, c_row);
  for (; m + 4 <= M; m += 4) micro<4, NV, add>(a + m * a_row, a_row, 1, b, K, c + m * c_row, c_row);
  for (; m < M; ++m) micro<1, NV, add>(a + m * a_row, a_row, 1, b, K, c + m * c_row, c_row);
}

/// Computes C [M, N] = A [M, K] B, with B in panels of NV vectors.
template <unsigned NV = 3>
inline void product(const float* a, const float* b, Index M, Index N, Index K, float* c) {
  for (Index j = 0; j < N; j += 16 * NV) panel_rows<NV, false>(a, K, b + j * K, M, K, c + j, N);
}

inline constexpr Index kRows = 256;  ///< rows of a block of the sum below

/// Computes X [R, I]^T G [R, N] into panels [N / 48][I][48] (NV vectors wide); I is a multiple of 8. scratch: 256 (N +
/// 8) floats.
template <unsigned NV = 3>
inline void product_of_transposed(const float* x, Index R, Index I, const float* g, Index N, float* w, float* scratch) {
  constexpr Index kWidth = 16 * NV;
  float* const panels = scratch;
  float* const columns = scratch + kRows * N;
  for (Index r = 0; r < R; r += kRows) {
    const Index kc = std::min(kRows, R - r);
    pack<NV>(g + r * N, kc, N, panels);
    for (Index m = 0; m < I; m += 8) {
      for (Index k = 0; k < kc; ++k) _mm256_storeu_ps(columns + k * 8, _mm256_loadu_ps(x + (r + k) * I + m));
      for (Index j = 0; j < N / kWidth; ++j) {
        const float* b = panels + j * kc * kWidth;
        float* c = w + (j * I + m) * kWidth;
        if (r > 0) {
          micro<8, NV, true>(columns, 1, 8, b, kc, c, kWidth);
        } else {
          micro<8, NV, false>(columns, 1, 8, b, kc, c, kWidth);
        }
      }
    }
  }
}

/// Multiplies one row by one panel of NV vectors, K a multiple of 4: four chains to each vector hide the latency.
template <unsigned NV>
inline void row_by_panel(const float* a, const float* b, Index K, __m512 (&acc)[NV]) {
  constexpr Index kWidth = 16 * NV;
  __m512 s[4][NV];
#pragma GCC unroll 4
  for (Index u = 0; u < 4; ++u)
#pragma GCC unroll 3
    for (Index v = 0; v < NV; ++v) s[u][v] = _mm512_setzero_ps();
  for (Index k = 0; k < K; k += 4, b += 4 * kWidth) {
#pragma GCC unroll 4
    for (Index u = 0; u < 4; ++u) {
      const __m512 x = _mm512_set1_ps(a[k + u]);
#pragma GCC unroll 3
      for (Index v = 0; v < NV; ++v) s[u][v] = _mm512_fmadd_ps(x, _mm512_load_ps(b + u * kWidth + v * 16), s[u][v]);
    }
  }
#pragma GCC unroll 3
  for (Index v = 0; v < NV; ++v)
    acc[v] = _mm512_add_ps(_mm512_add_ps(s[0][v], s[1][v]), _mm512_add_ps(s[2][v], s[3][v]));
}

/// Multiplies MR rows, `a_row` apart, by one panel.
template <unsigned MR>
inline void rows_by_panel(const float* a, Index a_row, const float* b, Index K, __m512 (&acc)[MR][3]) {
  if constexpr (MR == 1) {
    row_by_panel(a, b, K, acc[0]);
  } else {
#pragma GCC unroll 8
    for (Index m = 0; m < MR; ++m)
#pragma GCC unroll 3
      for (Index v = 0; v < 3; ++v) acc[m][v] = _mm512_setzero_ps();
    for (Index k = 0; k < K; ++k, b += kPanel) {
      const __m512 b0 = _mm512_load_ps(b);
      const __m512 b1 = _mm512_load_ps(b + 16);
      const __m512 b2 = _mm512_load_ps(b + 32);
#pragma GCC unroll 8
      for (Index m = 0; m < MR; ++m) {
        const __m512 x = _mm512_set1_ps(a[m * a_row + k]);
        acc[m][0] = _mm512_fmadd_ps(x, b0, acc[m][0]);
        acc[m][1] = _mm512_fmadd_ps(x, b1, acc[m][1]);
        acc[m][2] = _mm512_fmadd_ps(x, b2, acc[m][2]);
      }
    }
  }
}

}  // namespace limit
