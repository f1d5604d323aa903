#pragma once
/// x [1] -> GRU or LSTM -> linear(1), sample by sample, with sizes known at compile time: sums in four chains,
/// functions with as few dependent operations as possible, the last linear layer from the state in registers.
#include "limit.h"
#include "vectors.h"

namespace limit {

/// Returns e^x for |x| <= 87, with an error of about 2 ULP.
inline __m512 short_exp(__m512 x) {
  const __m512 shift = _mm512_set1_ps(12582912.0F);
  const __m512 sum = _mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504F), shift);
  const __m512 r = _mm512_fnmadd_ps(_mm512_sub_ps(sum, shift), _mm512_set1_ps(0.693147182F), x);
  const __m512 power = _mm512_castsi512_ps(
      _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(sum), 23), _mm512_set1_epi32(127 << 23)));
  const __m512 s = _mm512_mul_ps(r, r);
  const __m512 low = _mm512_fmadd_ps(s, _mm512_set1_ps(0.5F), _mm512_add_ps(r, _mm512_set1_ps(1.0F)));
  const __m512 middle = _mm512_fmadd_ps(r, _mm512_set1_ps(4.16668542e-2F), _mm512_set1_ps(1.66665494e-1F));
  const __m512 high = _mm512_fmadd_ps(r, _mm512_set1_ps(1.38982246e-3F), _mm512_set1_ps(8.36604089e-3F));
  const __m512 e = _mm512_fmadd_ps(_mm512_mul_ps(s, r), _mm512_fmadd_ps(s, high, middle), low);
  return _mm512_mul_ps(e, power);
}
inline __m512 bounded(__m512 x) {
  return _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-43.0F)), _mm512_set1_ps(43.0F));
}
inline __m512 short_sigmoid(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F);
  return _mm512_div_ps(one, _mm512_add_ps(one, short_exp(_mm512_sub_ps(_mm512_setzero_ps(), bounded(x)))));
}
/// Returns tanh as 1 - 2 / (e^(2x) + 1): near 0 the absolute error is 1e-7, the relative error is not.
inline __m512 short_tanh(__m512 x) {
  const __m512 one = _mm512_set1_ps(1.0F), b = bounded(x);
  const __m512 e = short_exp(_mm512_add_ps(b, b));
  return _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0F), _mm512_add_ps(e, one)));
}

/// A stream of H units with G gates in the order of Weights: 3 of a GRU, 4 of an LSTM.
template <std::size_t H, std::size_t G>
class SmallStream {
 public:
  SmallStream(const Weights& w, const float* out, float out_bias) : bias_(out_bias) {
    for (std::size_t g = 0; g < G; ++g)
      for (std::size_t u = 0; u < H; ++u) {
        const std::size_t from = g * H + u;
        for (std::size_t k = 0; k < H; ++k) at(hh_, k, g, u) = w.w_hh[k * G * H + from];
        at(ih_, 0, g, u) = w.w_ih[from];
        const bool apart = G == 3 && g == 2;  // the GRU's candidate multiplies one of its biases
        at(b_, 0, g, u) = apart ? w.b_ih[from] : w.b_ih[from] + w.b_hh[from];
        if (apart) b_hn_[u] = w.b_hh[from];
      }
    std::copy_n(out, H, out_);
  }

  void run(const float* x, float* y, Index samples) {
    __m512 h[U], c[U];
    for (std::size_t u = 0; u < U; ++u) h[u] = _mm512_load_ps(h_ + u * 16), c[u] = _mm512_load_ps(c_ + u * 16);
    for (Index t = 0; t < samples; ++t) {
      step(_mm512_set1_ps(x[t]), h, c);
      __m512 sum = _mm512_setzero_ps();
#pragma GCC unroll 4
      for (std::size_t u = 0; u < U; ++u) {
        _mm512_store_ps(h_ + u * 16, h[u]);
        sum = _mm512_fmadd_ps(h[u], _mm512_load_ps(out_ + u * 16), sum);
      }
      y[t] = _mm512_reduce_add_ps(sum) + bias_;
    }
    for (std::size_t u = 0; u < U; ++u) _mm512_store_ps(c_ + u * 16, c[u]);
  }

 private:
  static constexpr std::size_t U = (H + 15) / 16;
  static constexpr std::size_t kChains = U * G <= 4 ? 4 : U * G <= 9 ? 2 : 1;

  static float& at(float* packed, std::size_t k, std::size_t g, std::size_t u) {
    return packed[((k * G + g) * U + u / 16) * 16 + u % 16];
  }

  void step(__m512 x, __m512 (&h)[U], __m512 (&c)[U]) const {
    __m512 sums[kChains][G][U];
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kChains; ++s)
#pragma GCC unroll 4
      for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 4
        for (std::size_t u = 0; u < U; ++u) sums[s][g][u] = _mm512_setzero_ps();
    for (std::size_t first = 0; first < H; first += kChains)
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kChains; ++s) {
        const std::size_t k = first + s;
        const __m512 of_h = _mm512_set1_ps(h_[k]);
#pragma GCC unroll 4
        for (std::size_t g = 0; g < G; ++g)
#pragma GCC unroll 4
          for (std::size_t u = 0; u < U; ++u)
            sums[s][g][u] = _mm512_fmadd_ps(of_h, _mm512_load_ps(hh_ + ((k * G + g) * U + u) * 16), sums[s][g][u]);
      }
#pragma GCC unroll 4
    for (std::size_t u = 0; u < U; ++u) {
      __m512 of[G];
#pragma GCC unroll 4
      for (std::size_t g = 0; g < G; ++g) {
        of[g] = sums[0][g][u];
        for (std::size_t s = 1; s < kChains; ++s) of[g] = _mm512_add_ps(of[g], sums[s][g][u]);
      }
      const auto input = [&](std::size_t g) {
        return _mm512_fmadd_ps(x, _mm512_load_ps(ih_ + (g * U + u) * 16), _mm512_load_ps(b_ + (g * U + u) * 16));
      };
      const auto sum = [&](std::size_t g) { return _mm512_add_ps(input(g), of[g]); };
      if constexpr (G == 3) {
        const __m512 r = short_sigmoid(sum(0)), z = short_sigmoid(sum(1));
        const __m512 q = _mm512_add_ps(of[2], _mm512_load_ps(b_hn_ + u * 16));
        const __m512 n = short_tanh(_mm512_fmadd_ps(r, q, input(2)));
        h[u] = _mm512_fmadd_ps(z, _mm512_sub_ps(h[u], n), n);
      } else {
        const __m512 i = short_sigmoid(sum(0)), f = short_sigmoid(sum(1)), g = short_tanh(sum(2));
        const __m512 o = short_sigmoid(sum(3));
        c[u] = _mm512_fmadd_ps(f, c[u], _mm512_mul_ps(i, g));
        h[u] = _mm512_mul_ps(o, short_tanh(c[u]));
      }
    }
  }

  alignas(64) float hh_[H * G * U * 16] = {};
  alignas(64) float ih_[G * U * 16] = {};
  alignas(64) float b_[G * U * 16] = {};
  alignas(64) float b_hn_[U * 16] = {};
  alignas(64) float out_[U * 16] = {};
  alignas(64) float h_[U * 16] = {};
  alignas(64) float c_[U * 16] = {};
  float bias_;
};

}  // namespace limit
