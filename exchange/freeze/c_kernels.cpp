/// The text of the loops. In it, $T is the type, $s its suffix, $S the suffix in capitals, $L the lanes of a reduction.
#include "ferrite/exchange/freeze/c_kernels.h"

#include "ferrite/exchange/export_error.h"
#include "ferrite/exchange/freeze/c_text.h"

namespace ferrite::exchange::detail {
namespace {

struct Kernel {
  std::string_view name, text;
};

constexpr std::string_view kTile = R"(
/* R rows and V vectors of columns of y (+)= a . b over the terms k0..k1 - 1, each sum one ascending chain. `last` is
   the number of columns of the last vector. Terms of a row of a lie `ak` elements apart. */
NF_INLINE void nf_tile_$s(const $T *a, ptrdiff_t lda, ptrdiff_t ak, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy,
                          ptrdiff_t k0, ptrdiff_t k1, int R, int V, int last) {
  nf_$s sum[8];
  NF_UNROLL
  for (int i = 0; i < R * V; ++i) sum[i] = nf_set_$s(0);
  for (ptrdiff_t k = k0; k < k1; ++k) {
    nf_$s w[8];
    NF_UNROLL
    for (int v = 0; v < V; ++v)
      w[v] = last < NF_LANES_$S && v + 1 == V ? nf_get_$s(b + k * ldb + v * NF_LANES_$S, last)
                                              : nf_load_$s(b + k * ldb + v * NF_LANES_$S);
    NF_UNROLL
    for (int r = 0; r < R; ++r) {
      const nf_$s x = nf_set_$s(a[r * lda + k * ak]);
      NF_UNROLL
      for (int v = 0; v < V; ++v) sum[r * V + v] = nf_fma_$s(x, w[v], sum[r * V + v]);
    }
  }
  NF_UNROLL
  for (int r = 0; r < R; ++r) {
    NF_UNROLL
    for (int v = 0; v < V; ++v) {
      $T *const to = y + r * ldy + v * NF_LANES_$S;
      const int n = v + 1 == V ? last : NF_LANES_$S;
      const nf_$s all = k0 == 0 ? sum[r * V + v] : nf_get_$s(to, n) + sum[r * V + v];
      nf_put_$s(to, all, n);
    }
  }
}
)";

constexpr std::string_view kRows = R"(
/* R rows of y (+)= a . b over the terms k0..k1 - 1, in tiles of V vectors, the last of which may be smaller. */
NF_INLINE void nf_strip_$s(const $T *a, ptrdiff_t lda, ptrdiff_t ak, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy,
                           ptrdiff_t N, ptrdiff_t k0, ptrdiff_t k1, int R, int V) {
  const ptrdiff_t width = (ptrdiff_t)V * NF_LANES_$S, tiles = N / width, rest = N - tiles * width;
  const int left = (int)((rest + NF_LANES_$S - 1) / NF_LANES_$S);
  for (ptrdiff_t j = 0; j < tiles * width; j += width)
    nf_tile_$s(a, lda, ak, b + j, ldb, y + j, ldy, k0, k1, R, V, NF_LANES_$S);
  if (left > 0)
    nf_tile_$s(a, lda, ak, b + tiles * width, ldb, y + tiles * width, ldy, k0, k1, R, left,
               (int)(rest - (left - 1) * (ptrdiff_t)NF_LANES_$S));
}
/* y [M, N] = a [M, K] . b [K, N]: every element is the ascending sum of blocks of 256 terms, each block one chain of
   fused multiply-adds. Rows of a and y lie `lda` and `ldy` elements apart, terms of a row of a `ak`. */
NF_INLINE void nf_rows_$s(const $T *a, ptrdiff_t lda, ptrdiff_t ak, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy,
                          ptrdiff_t M, ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
    const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
    const ptrdiff_t eights = NF_LANES_$S > 1 && N <= NF_LANES_$S ? M / 8 * 8 : 0;
    const ptrdiff_t fours = eights + (M - eights) / 4 * 4;
    for (ptrdiff_t m = 0; m < eights; m += 8)
      nf_strip_$s(a + m * lda, lda, ak, b, ldb, y + m * ldy, ldy, N, k0, k1, 8, 1);
    for (ptrdiff_t m = eights; m < fours; m += 4)
      nf_strip_$s(a + m * lda, lda, ak, b, ldb, y + m * ldy, ldy, N, k0, k1, 4, 2);
    for (ptrdiff_t m = fours; m < M; ++m)
      nf_strip_$s(a + m * lda, lda, ak, b, ldb, y + m * ldy, ldy, N, k0, k1, 1, 8);
  }
}
)";

constexpr std::string_view kSteps = R"(
/* R columns at V vectors of steps of y (+)= a . b over the terms k0..k1 - 1, each sum one ascending chain. */
NF_INLINE void nf_few_steps_$s(const $T *const *rows, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y, ptrdiff_t ldy,
                               ptrdiff_t t, ptrdiff_t k0, ptrdiff_t k1, int R, int V) {
  nf_$s sum[16];
  NF_UNROLL
  for (int i = 0; i < R * V; ++i) sum[i] = nf_set_$s(0);
  for (ptrdiff_t k = k0; k < k1; ++k) {
    const $T *const x = rows[k] + t;
    nf_$s a[4];
    NF_UNROLL
    for (int v = 0; v < V; ++v) a[v] = nf_load_$s(x + v * NF_LANES_$S);
    NF_UNROLL
    for (int r = 0; r < R; ++r) {
      const nf_$s w = nf_set_$s(b[k * bk + r * bn]);
      NF_UNROLL
      for (int v = 0; v < V; ++v) sum[r * V + v] = nf_fma_$s(a[v], w, sum[r * V + v]);
    }
  }
  NF_UNROLL
  for (int r = 0; r < R; ++r) {
    NF_UNROLL
    for (int v = 0; v < V; ++v) {
      $T *const to = y + r * ldy + t + v * NF_LANES_$S;
      nf_store_$s(to, k0 == 0 ? sum[r * V + v] : nf_load_$s(to) + sum[r * V + v]);
    }
  }
}
NF_INLINE void nf_strip_of_steps_$s(const $T *const *rows, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y,
                                    ptrdiff_t ldy, ptrdiff_t T, ptrdiff_t k0, ptrdiff_t k1, int R) {
  const ptrdiff_t fours = NF_SUMS >= 24 && R <= 4 ? T / (4 * NF_LANES_$S) * (4 * NF_LANES_$S) : 0;
  const ptrdiff_t twos = fours + (T - fours) / (2 * NF_LANES_$S) * (2 * NF_LANES_$S);
  if (NF_SUMS >= 24 && R <= 4)
    for (ptrdiff_t t = 0; t < fours; t += 4 * NF_LANES_$S)
      nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 4);
  for (ptrdiff_t t = fours; t < twos; t += 2 * NF_LANES_$S)
    nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 2);
  for (ptrdiff_t t = twos; t < T; t += NF_LANES_$S) nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 1);
}
/* y[n][t] = the sum of rows[k][t] b[k][n] over K terms, for T consecutive steps t: vectors run over the steps. Every
   element is the ascending sum of blocks of 256 terms. T is a multiple of 16. */
NF_INLINE void nf_steps_$s(const $T *const *rows, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y, ptrdiff_t ldy,
                           ptrdiff_t T, ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
    const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
    const ptrdiff_t eights = NF_SUMS >= 24 && T < 4 * NF_LANES_$S ? N / 8 * 8 : 0, fours = N / 4 * 4;
    for (ptrdiff_t n = 0; n < eights; n += 8)
      nf_strip_of_steps_$s(rows, b + n * bn, bk, bn, y + n * ldy, ldy, T, k0, k1, 8);
    for (ptrdiff_t n = eights; n < fours; n += 4)
      nf_strip_of_steps_$s(rows, b + n * bn, bk, bn, y + n * ldy, ldy, T, k0, k1, 4);
    if (fours < N)
      nf_strip_of_steps_$s(rows, b + fours * bn, bk, bn, y + fours * ldy, ldy, T, k0, k1, (int)(N - fours));
  }
}
)";

constexpr std::string_view kDots = R"(
/* y [M, N] = a [M, K] . b [K, N] with any strides: ascending sums of blocks of 256 terms, eight columns at a time. */
NF_INLINE void nf_dots_$s(const $T *a, ptrdiff_t am, ptrdiff_t ak, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y,
                          ptrdiff_t ldy, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t m = 0; m < M; ++m)
    for (ptrdiff_t n = 0; n < N; n += 8) {
      const int left = N - n < 8 ? (int)(N - n) : 8;
      $T total[8] = {0};
      for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
        const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
        $T sum[8] = {0};
        if (left == 8)
          for (ptrdiff_t k = k0; k < k1; ++k) {
            NF_UNROLL
            for (int l = 0; l < 8; ++l) sum[l] = nf_fma1_$s(a[m * am + k * ak], b[k * bk + (n + l) * bn], sum[l]);
          }
        else
          for (ptrdiff_t k = k0; k < k1; ++k)
            for (int l = 0; l < left; ++l) sum[l] = nf_fma1_$s(a[m * am + k * ak], b[k * bk + (n + l) * bn], sum[l]);
        for (int l = 0; l < left; ++l) total[l] = k0 == 0 ? sum[l] : total[l] + sum[l];
      }
      for (int l = 0; l < left; ++l) y[m * ldy + n + l] = total[l];
    }
}
)";

/// $J joins a and b; $0 is the number that changes nothing.
constexpr std::string_view kReduction = R"(
/* $N of n numbers: $L lanes inside blocks of 1024, lanes halved pairwise, blocks ascending. */
NF_INLINE $T nf_$N_$s(const $T *x, ptrdiff_t step, ptrdiff_t n) {
  $T total = $0;
  for (ptrdiff_t first = 0; first < n; first += 1024) {
    const ptrdiff_t end = n - first < 1024 ? n : first + 1024;
    $T lane[$L];
    for (int l = 0; l < $L; ++l) lane[l] = $0;
    ptrdiff_t i = first;
    for (; i + $L <= end; i += $L)
      for (int l = 0; l < $L; ++l) {
        const $T a = lane[l], b = x[(i + l) * step];
        lane[l] = $J;
      }
    for (int l = 0; i + l < end; ++l) {
      const $T a = lane[l], b = x[(i + l) * step];
      lane[l] = $J;
    }
    for (int half = $L / 2; half >= 1; half /= 2)
      for (int l = 0; l < half; ++l) {
        const $T a = lane[l], b = lane[l + half];
        lane[l] = $J;
      }
    const $T a = total, b = lane[0];
    total = first == 0 ? b : $J;
  }
  return total;
}
)";

constexpr std::string_view kWindowTile = R"(
/* R rows and V vectors of positions of nf_windows, over the terms k0..k1 - 1. `last` is the number of positions of the
   last vector; `ends` says that no terms follow. */
NF_INLINE void nf_window_tile_$s(const $T *w, ptrdiff_t K, const $T *image, const int32_t *places, ptrdiff_t step,
                                 const $T *bias, $T *y, ptrdiff_t ldy, ptrdiff_t to_step, ptrdiff_t k0, ptrdiff_t k1,
                                 int R, int V, int last, int ends) {
  nf_$s sum[8];
  NF_UNROLL
  for (int i = 0; i < R * V; ++i) sum[i] = nf_set_$s(0);
  for (ptrdiff_t k = k0; k < k1; ++k) {
    const $T *const from = image + places[k];
    nf_$s x[8];
    NF_UNROLL
    for (int v = 0; v < V; ++v) {
      const int n = v + 1 == V ? last : NF_LANES_$S;
      x[v] = step != 1             ? nf_gather_$s(from + v * NF_LANES_$S * step, step, n)
             : n < NF_LANES_$S ? nf_get_$s(from + v * NF_LANES_$S, n)
                                   : nf_load_$s(from + v * NF_LANES_$S);
    }
    NF_UNROLL
    for (int r = 0; r < R; ++r) {
      const nf_$s weight = nf_set_$s(w[r * K + k]);
      NF_UNROLL
      for (int v = 0; v < V; ++v) sum[r * V + v] = nf_fma_$s(weight, x[v], sum[r * V + v]);
    }
  }
  NF_UNROLL
  for (int r = 0; r < R; ++r) {
    NF_UNROLL
    for (int v = 0; v < V; ++v) {
      $T *const to = y + r * ldy + v * NF_LANES_$S * to_step;
      const int n = v + 1 == V ? last : NF_LANES_$S;
      nf_$s all = sum[r * V + v];
      if (k0 > 0) all = (to_step == 1 ? nf_get_$s(to, n) : nf_gather_$s(to, to_step, n)) + all;
      if (ends && bias != 0) all = all + nf_set_$s(bias[r]);
      if (to_step == 1)
        nf_put_$s(to, all, n);
      else
        nf_scatter_$s(to, to_step, all, n);
    }
  }
}
)";

constexpr std::string_view kWindows = R"(
/* R rows of nf_windows, in tiles of at most V vectors. */
NF_INLINE void nf_window_rows_$s(const $T *w, ptrdiff_t K, const $T *image, const int32_t *places, ptrdiff_t step,
                                 const $T *bias, $T *y, ptrdiff_t ldy, ptrdiff_t to_step, ptrdiff_t N, ptrdiff_t k0,
                                 ptrdiff_t k1, int R, int V) {
  ptrdiff_t j = 0;
  for (; j + V * NF_LANES_$S <= N; j += V * NF_LANES_$S)
    nf_window_tile_$s(w, K, image + j * step, places, step, bias, y + j * to_step, ldy, to_step, k0, k1, R, V,
                      NF_LANES_$S, k1 == K);
  for (; j < N; j += NF_LANES_$S)
    nf_window_tile_$s(w, K, image + j * step, places, step, bias, y + j * to_step, ldy, to_step, k0, k1, R, 1,
                      N - j < NF_LANES_$S ? (int)(N - j) : NF_LANES_$S, k1 == K);
}
/* y [M, N] = w [M, K] times what the terms read, plus a bias for each row: term k of position j is
   image[places[k] + j * step]. Sums are ascending, in blocks of 256 terms. Rows of y lie `ldy` elements apart,
   positions `to_step`. */
NF_INLINE void nf_windows_$s(const $T *w, const $T *image, const int32_t *places, ptrdiff_t step, const $T *bias, $T *y,
                             ptrdiff_t ldy, ptrdiff_t to_step, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N) {
  ptrdiff_t k0 = 0;
  do {
    const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
    ptrdiff_t m = 0;
    for (; m + 4 <= M; m += 4)
      nf_window_rows_$s(w + m * K, K, image, places, step, bias ? bias + m : bias, y + m * ldy, ldy, to_step, N, k0, k1,
                        4, 2);
    for (; m < M; ++m)
      nf_window_rows_$s(w + m * K, K, image, places, step, bias ? bias + m : bias, y + m * ldy, ldy, to_step, N, k0, k1,
                        1, 4);
    k0 = k1;
  } while (k0 < K);
}
)";

constexpr std::string_view kRowSums = R"(
/* y = the sum of rows of `width` numbers, `step` elements apart: ascending, in blocks of 256 rows. */
NF_INLINE void nf_row_sums_$s(const $T *x, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t width, $T *y) {
  for (ptrdiff_t j = 0; j < width; j += NF_LANES_$S) {
    const int left = width - j < NF_LANES_$S ? (int)(width - j) : NF_LANES_$S;
    nf_$s total = nf_set_$s(0);
    for (ptrdiff_t first = 0; first < rows; first += 256) {
      const ptrdiff_t end = rows - first < 256 ? rows : first + 256;
      nf_$s block = nf_get_$s(x + first * step + j, left);
      for (ptrdiff_t r = first + 1; r < end; ++r) block = block + nf_get_$s(x + r * step + j, left);
      total = first == 0 ? block : total + block;
    }
    nf_put_$s(y + j, total, left);
  }
}
)";

constexpr std::string_view kDecay = R"(
/* e^x of selective scans: 0 where it would be a denormal number */
NF_INLINE nf_f nf_decay_f(nf_f x) {
  const nf_f least = nf_set_f(-88.0f), most = nf_set_f(88.4f), shift = nf_set_f(12583039.f);
  const nf_f bounded = nf_first_min_f(nf_first_max_f(x, least), most);
  const nf_f sum = nf_fma_f(bounded, nf_set_f(1.44269504088896341f), shift), n = sum - shift;
  const nf_f r = nf_fma_f(n, nf_set_f(2.12194440e-4f), nf_fma_f(n, nf_set_f(-0.693359375f), bounded)), z = r * r;
  const nf_f middle = nf_fma_f(nf_set_f(8.36604089e-3f), r, nf_set_f(4.16668542e-2f));
  const nf_f low = nf_fma_f(nf_set_f(1.66665494e-1f), r, nf_set_f(0.5f));
  const nf_f high = nf_fma_f(z, nf_set_f(1.38982246e-3f), middle);
  return nf_fma_f(nf_fma_f(z, high, low), z, r + nf_set_f(1)) * nf_from_bits_f(nf_shl_i(nf_bits_f(sum), 23));
}
)";
constexpr std::string_view kDecayOfDoubles = R"(
/* e^x of selective scans: 0 where it would be a denormal number */
NF_INLINE nf_d nf_decay_d(nf_d x) {
  static const double series[10] = {0.50000000000000011,    0.16666666666666669,    0.041666666666624164,
                                    0.008333333333330065,   0.0013888888917196719,  0.00019841269863040545,
                                    2.4801521322368692e-05, 2.7557268480310024e-06, 2.7620075879983367e-07,
                                    2.5100375832561234e-08};
  const nf_d least = nf_set_d(-709.0), most = nf_set_d(709.5), shift = nf_set_d(6755399441056767.0);
  const nf_d bounded = nf_first_min_d(nf_first_max_d(x, least), most);
  const nf_d sum = nf_fma_d(bounded, nf_set_d(1.4426950408889634074), shift), n = sum - shift;
  const nf_d r = nf_fma_d(n, nf_set_d(-5.497923018708371e-14), nf_fma_d(n, nf_set_d(-0.6931471805598903), bounded));
  nf_d p = nf_set_d(series[9]);
  for (int k = 8; k >= 0; --k) p = nf_fma_d(p, r, nf_set_d(series[k]));
  return (nf_fma_d(r * r, p, r) + nf_set_d(1)) * nf_from_bits_d(nf_shl_l(nf_bits_d(sum), 52));
}
)";

constexpr std::string_view kRunningSum = R"(
/* Running sums of n numbers in doubles: blocks of 8 by doubling. */
NF_INLINE void nf_running_sum_$s(const $T *x, $T *y, ptrdiff_t n, int reverse) {
  double before = 0;
  ptrdiff_t done = 0;
  for (; done + 8 <= n; done += 8) {
    double v[8], all;
    for (int l = 0; l < 8; ++l) v[l] = (double)x[reverse ? n - 1 - done - l : done + l];
    for (int shift = 1; shift < 8; shift *= 2)
      for (int l = 7; l >= 0; --l) v[l] += l >= shift ? v[l - shift] : 0.0;
    all = v[7];
    for (int l = 0; l < 8; ++l) y[reverse ? n - 1 - done - l : done + l] = ($T)(v[l] + before);
    before += all;
  }
  for (; done < n; ++done) {
    const ptrdiff_t at = reverse ? n - 1 - done : done;
    before += (double)x[at];
    y[at] = ($T)before;
  }
}
)";

constexpr std::string_view kFirst = R"(
NF_INLINE $T nf_first_$s(nf_$s v) {
  $T x[1];
  nf_put_$s(x, v, 1);
  return x[0];
}
)";

constexpr std::string_view kWords = R"C(
#if defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__OPTIMIZE_SIZE__)
#define NF_INLINE static inline __attribute__((always_inline, unused))
#elif defined(__GNUC__)
#define NF_INLINE static inline __attribute__((unused))
#else
#define NF_INLINE static inline
#endif
#if defined(__GNUC__) /* what is called now and then, and is not worth a compiler's time at each call */
#define NF_APART static __attribute__((noinline, unused))
#else
#define NF_APART static
#endif
#if defined(__clang__)
#define NF_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define NF_UNROLL _Pragma("GCC unroll 8")
#else
#define NF_UNROLL
#endif
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE_SIZE__) /* unrolled rounds that never run */
#pragma GCC diagnostic ignored "-Warray-bounds"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#if defined(__GNUC__)
#define NF_ALIGNED __attribute__((aligned(64)))
#else
#define NF_ALIGNED
#endif
#if defined(__GNUC__)
#define NF_INFINITY_F __builtin_inff()
#define NF_INFINITY_D __builtin_inf()
#define NF_NAN_F __builtin_nanf("")
#define NF_NAN_D __builtin_nan("")
#else
#define NF_INFINITY_F INFINITY
#define NF_INFINITY_D ((double)INFINITY)
#define NF_NAN_F NAN
#define NF_NAN_D ((double)NAN)
#endif
/* The number of sums that fit into registers, and of elements behind a constant array that vectors may read. */
#if NF_VECTOR_BYTES == 64 || defined(__AVX512VL__) || defined(__aarch64__) || NF_VECTOR_BYTES == 0
#define NF_SUMS 24
#else
#define NF_SUMS 15
#endif
#define NF_BEHIND (NF_VECTOR_BYTES > 0 ? 80 : 4)
/* Copies bytes and returns the end of the copy. */
NF_APART unsigned char *nf_bytes(void *to, const void *from, ptrdiff_t bytes) {
  unsigned char *const t = (unsigned char *)to;
  const unsigned char *const f = (const unsigned char *)from;
  for (ptrdiff_t i = 0; i < bytes; ++i) t[i] = f[i];
  return t + bytes;
}
/* Continues a sum of bits (FNV-1a). */
NF_APART uint32_t nf_sum_of_bits(const void *from, ptrdiff_t bytes, uint32_t sum) {
  const unsigned char *const f = (const unsigned char *)from;
  for (ptrdiff_t i = 0; i < bytes; ++i) sum = (sum ^ f[i]) * 16777619U;
  return sum;
}
)C";

/// Continues a sum of bits with n numbers: all NaNs are one, whose bits depend on the processor.
constexpr std::string_view kCheckSum = R"C(
NF_APART uint32_t nf_check_sum_$s(const $T *x, ptrdiff_t n, uint32_t sum) {
  for (ptrdiff_t i = 0; i < n; ++i) {
    const $T v = x[i] != x[i] ? 0 : x[i];
    sum = nf_sum_of_bits(&v, (ptrdiff_t)sizeof v, sum);
  }
  return sum;
}
)C";

struct Reduction {
  std::string_view name, join, nothing;
};
constexpr Reduction kReductions[] = {
    {"sum", "a + b", "0"},
    {"prod", "a * b", "1"},
    {"amax", "a > b || a != a ? a : b", "-NF_INFINITY_$S"},
    {"amin", "a < b || a != a ? a : b", "NF_INFINITY_$S"},
};

constexpr Kernel kKernels[] = {
    {"tile", kTile},
    {"rows", kRows},
    {"steps", kSteps},
    {"dots", kDots},
    {"decay", kDecay},
    {"first", kFirst},
    {"row_sums", kRowSums},
    {"running_sum", kRunningSum},
    {"window_tile", kWindowTile},
    {"windows", kWindows},
    {"check_sum", kCheckSum},
};

}  // namespace

std::string c_words() { return std::string(kWords); }

std::string c_kernel(std::string_view name, Dtype dtype) {
  std::string text;
  for (const Kernel& k : kKernels)
    if (k.name == name) text = k.text;
  for (const Reduction& r : kReductions)
    if (r.name == name)
      text = replaced(replaced(replaced(std::string(kReduction), "$J", r.join), "$0", r.nothing), "$N", r.name);
  if (name == "decay" && dtype == Dtype::f64) text = kDecayOfDoubles;
  if (text.empty()) throw ExportError("freeze: there is no loop " + std::string(name));
  const bool wide = dtype == Dtype::f64;
  text = replaced(text, "$T", wide ? "double" : "float");
  text = replaced(text, "$s", wide ? "d" : "f");
  text = replaced(text, "$S", wide ? "D" : "F");
  return replaced(text, "$L", std::to_string(most_lanes_of(dtype)));
}

}  // namespace ferrite::exchange::detail
