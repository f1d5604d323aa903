#pragma once
/// The forward pass of a GRU: the input product hoisted over all steps, one recurrent product a step, gates finished in
/// registers. For hidden units 16 j .. 16 j + 15 the r, z and n columns are adjacent in one panel.
#include "limit.h"
#include "panels.h"

namespace limit {

/// Packs w [K, 3H] into panels of `rows` rows for padded units, with zeros beyond w.
inline void pack_gates(const float* w, Index H, Index K, Index padded_units, Index rows, float* to) {
  for (Index j = 0; j < padded_units; j += 16)
    for (Index k = 0; k < rows; ++k)
      for (Index g = 0; g < 3; ++g)
        for (Index u = j; u < j + 16; ++u) *to++ = k < K && u < H ? w[k * 3 * H + g * H + u] : 0.0F;
}
/// Returns the index of row k, column `column` = g H + unit, in the panels of pack_gates.
inline Index place(Index H, Index rows, Index k, Index column) {
  const Index unit = column % H;
  return (unit / 16 * rows + k) * kPanel + column / H * 16 + unit % 16;
}

struct Gru {
  Gru(Index inputs, Index units)
      : D(padded(inputs, 16)), H(padded(units, 16)), w_ih(3 * H * D), w_hh(3 * H * H), b(3 * H), b_hn(H) {}

  void load(const Weights& w, Index inputs, Index units) {
    pack_gates(w.w_ih, units, inputs, H, D, w_ih);
    pack_gates(w.w_hh, units, units, H, H, w_hh);
    for (Index u = 0; u < units; ++u) {
      float* const at = b + u / 16 * kPanel + u % 16;
      for (Index g = 0; g < 3; ++g) at[g * 16] = w.b_ih[g * units + u] + (g < 2 ? w.b_hh[g * units + u] : 0.0F);
      b_hn[u] = w.b_hh[2 * units + u];
    }
  }

  /// Computes x [T, B, D] -> hs [T + 1, B, H], where hs begins with the initial state. i: scratch [T B, 3H].
  template <bool save>
  void forward(const float* x, Index T, Index B, float* hs, float* i, float* saved) const {
    product(x, w_ih, T * B, 3 * H, D, i);
    for (Index t = 0; t < T; ++t)
      step<save>(hs + t * B * H, i + t * B * 3 * H, B, hs + (t + 1) * B * H, save ? saved + t * B * 4 * H : nullptr);
  }

  /// Computes one step of one row, with both products and the gates in one pass over the panels.
  void stream(const float* x, const float* h, float* next) const {
    for (Index j = 0; j < H / 16; ++j) {
      __m512 from_x[3];
      __m512 from_h[3];
      row_by_panel(x, w_ih + j * D * kPanel, D, from_x);
      row_by_panel(h, w_hh + j * H * kPanel, H, from_h);
      const float* bias = b + j * kPanel;
      const __m512 r = sigmoid(_mm512_add_ps(_mm512_add_ps(from_x[0], from_h[0]), _mm512_load_ps(bias)));
      const __m512 z = sigmoid(_mm512_add_ps(_mm512_add_ps(from_x[1], from_h[1]), _mm512_load_ps(bias + 16)));
      const __m512 q = _mm512_add_ps(from_h[2], _mm512_load_ps(b_hn + j * 16));
      const __m512 n = tanh(_mm512_fmadd_ps(r, q, _mm512_add_ps(from_x[2], _mm512_load_ps(bias + 32))));
      const __m512 before = _mm512_load_ps(h + j * 16);
      _mm512_store_ps(next + j * 16, _mm512_fmadd_ps(z, _mm512_sub_ps(before, n), n));
    }
  }

  Index D, H;                  ///< padded to 16
  Buffer w_ih, w_hh, b, b_hn;  ///< b: b_ih + b_hh of r and z, b_ih of n, panel by panel

 private:
  template <bool save>
  void step(const float* h, const float* i, Index B, float* next, float* saved) const {
    Index m = 0;
    for (; m + 8 <= B; m += 8) rows<8, save>(h, i, m, next, saved);
    for (; m + 4 <= B; m += 4) rows<4, save>(h, i, m, next, saved);
    for (; m < B; ++m) rows<1, save>(h, i, m, next, saved);
  }

  template <unsigned MR, bool save>
  void rows(const float* h, const float* i, Index first, float* next, float* saved) const {
    for (Index j = 0; j < H / 16; ++j) {
      __m512 acc[MR][3];
      rows_by_panel<MR>(h + first * H, H, w_hh + j * H * kPanel, H, acc);
      const float* bias = b + j * kPanel;
#pragma GCC unroll 8
      for (Index m = 0; m < MR; ++m) {
        const float* g = i + (first + m) * 3 * H + j * kPanel;
        const __m512 r = sigmoid(_mm512_add_ps(acc[m][0], _mm512_add_ps(_mm512_load_ps(bias), _mm512_load_ps(g))));
        const __m512 z =
            sigmoid(_mm512_add_ps(acc[m][1], _mm512_add_ps(_mm512_load_ps(bias + 16), _mm512_load_ps(g + 16))));
        const __m512 q = _mm512_add_ps(acc[m][2], _mm512_load_ps(b_hn + j * 16));
        const __m512 n = tanh(_mm512_fmadd_ps(r, q, _mm512_add_ps(_mm512_load_ps(bias + 32), _mm512_load_ps(g + 32))));
        const __m512 before = _mm512_load_ps(h + (first + m) * H + j * 16);
        _mm512_store_ps(next + (first + m) * H + j * 16, _mm512_fmadd_ps(z, _mm512_sub_ps(before, n), n));
        if constexpr (save) {
          float* s = saved + (first + m) * 4 * H + j * 64;
          _mm512_store_ps(s, r);
          _mm512_store_ps(s + 16, z);
          _mm512_store_ps(s + 32, n);
          _mm512_store_ps(s + 48, q);
        }
      }
    }
  }
};

}  // namespace limit
