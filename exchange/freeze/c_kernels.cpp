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
   the number of columns of the last vector. */
NF_INLINE void nf_tile_$s(const $T *a, ptrdiff_t lda, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy, ptrdiff_t k0,
                          ptrdiff_t k1, int R, int V, int last) {
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
      const nf_$s x = nf_set_$s(a[r * lda + k]);
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
NF_INLINE void nf_strip_$s(const $T *a, ptrdiff_t lda, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy, ptrdiff_t N,
                           ptrdiff_t k0, ptrdiff_t k1, int R, int V) {
  const ptrdiff_t width = (ptrdiff_t)V * NF_LANES_$S, tiles = N / width, rest = N - tiles * width;
  const int left = (int)((rest + NF_LANES_$S - 1) / NF_LANES_$S);
  for (ptrdiff_t j = 0; j < tiles * width; j += width)
    nf_tile_$s(a, lda, b + j, ldb, y + j, ldy, k0, k1, R, V, NF_LANES_$S);
  if (left > 0)
    nf_tile_$s(a, lda, b + tiles * width, ldb, y + tiles * width, ldy, k0, k1, R, left,
               (int)(rest - (left - 1) * (ptrdiff_t)NF_LANES_$S));
}
/* y [M, N] = a [M, K] . b [K, N]: every element is the ascending sum of blocks of 256 terms, each block one chain of
   fused multiply-adds. Rows of y lie `ldy` elements apart. */
NF_INLINE void nf_rows_$s(const $T *a, ptrdiff_t lda, const $T *b, ptrdiff_t ldb, $T *y, ptrdiff_t ldy, ptrdiff_t M,
                          ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
    const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
    ptrdiff_t m = 0;
    if (NF_LANES_$S > 1 && N <= NF_LANES_$S)
      for (; m + 8 <= M; m += 8) nf_strip_$s(a + m * lda, lda, b, ldb, y + m * ldy, ldy, N, k0, k1, 8, 1);
    for (; m + 4 <= M; m += 4) nf_strip_$s(a + m * lda, lda, b, ldb, y + m * ldy, ldy, N, k0, k1, 4, 2);
    for (; m < M; ++m) nf_strip_$s(a + m * lda, lda, b, ldb, y + m * ldy, ldy, N, k0, k1, 1, 8);
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
NF_INLINE void nf_strip_of_steps_$s(const $T *const *rows, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y, ptrdiff_t ldy,
                                    ptrdiff_t T, ptrdiff_t k0, ptrdiff_t k1, int R) {
  ptrdiff_t t = 0;
  if (NF_SUMS >= 24 && R <= 4)
    for (; t + 4 * NF_LANES_$S <= T; t += 4 * NF_LANES_$S)
      nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 4);
  for (; t + 2 * NF_LANES_$S <= T; t += 2 * NF_LANES_$S)
    nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 2);
  for (; t < T; t += NF_LANES_$S) nf_few_steps_$s(rows, b, bk, bn, y, ldy, t, k0, k1, R, 1);
}
/* y[n][t] = the sum of rows[k][t] b[k][n] over K terms, for T consecutive steps t: vectors run over the steps. Every
   element is the ascending sum of blocks of 256 terms. T is a multiple of 16. */
NF_INLINE void nf_steps_$s(const $T *const *rows, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y, ptrdiff_t ldy,
                           ptrdiff_t T, ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
    const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
    ptrdiff_t n = 0;
    if (NF_SUMS >= 24 && T < 4 * NF_LANES_$S)
      for (; n + 8 <= N; n += 8) nf_strip_of_steps_$s(rows, b + n * bn, bk, bn, y + n * ldy, ldy, T, k0, k1, 8);
    for (; n + 4 <= N; n += 4) nf_strip_of_steps_$s(rows, b + n * bn, bk, bn, y + n * ldy, ldy, T, k0, k1, 4);
    if (N % 4 != 0) nf_strip_of_steps_$s(rows, b + n * bn, bk, bn, y + n * ldy, ldy, T, k0, k1, (int)(N % 4));
  }
}
)";

constexpr std::string_view kDots = R"(
/* y [M, N] = a [M, K] . b [K, N] with any strides, element by element: ascending sums of blocks of 256 terms. */
NF_INLINE void nf_dots_$s(const $T *a, ptrdiff_t am, ptrdiff_t ak, const $T *b, ptrdiff_t bk, ptrdiff_t bn, $T *y,
                          ptrdiff_t ldy, ptrdiff_t M, ptrdiff_t K, ptrdiff_t N) {
  for (ptrdiff_t m = 0; m < M; ++m)
    for (ptrdiff_t n = 0; n < N; ++n) {
      $T total = 0;
      for (ptrdiff_t k0 = 0; k0 < K; k0 += 256) {
        const ptrdiff_t k1 = K - k0 < 256 ? K : k0 + 256;
        $T sum = 0;
        for (ptrdiff_t k = k0; k < k1; ++k) sum = nf_fma1_$s(a[m * am + k * ak], b[k * bk + n * bn], sum);
        total = k0 == 0 ? sum : total + sum;
      }
      y[m * ldy + n] = total;
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
#if defined(__clang__)
#define NF_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define NF_UNROLL _Pragma("GCC unroll 8")
#else
#define NF_UNROLL
#endif
#if defined(__GNUC__)
#define NF_ALIGNED __attribute__((aligned(64)))
#else
#define NF_ALIGNED
#endif
/* The number of sums that fit into registers, and of elements behind a constant array that vectors may read. */
#if NF_VECTOR_BYTES == 64 || defined(__AVX512VL__) || defined(__aarch64__) || NF_VECTOR_BYTES == 0
#define NF_SUMS 24
#else
#define NF_SUMS 15
#endif
#define NF_BEHIND (NF_LANES_F > 1 ? 64 : 4)
/* Copies bytes and returns the end of the copy. */
NF_INLINE unsigned char *nf_bytes(void *to, const void *from, ptrdiff_t bytes) {
  unsigned char *const t = (unsigned char *)to;
  const unsigned char *const f = (const unsigned char *)from;
  for (ptrdiff_t i = 0; i < bytes; ++i) t[i] = f[i];
  return t + bytes;
}
/* Continues a sum of bits (FNV-1a). */
NF_INLINE uint32_t nf_sum_of_bits(const void *from, ptrdiff_t bytes, uint32_t sum) {
  const unsigned char *const f = (const unsigned char *)from;
  for (ptrdiff_t i = 0; i < bytes; ++i) sum = (sum ^ f[i]) * 16777619U;
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
    {"first", kFirst},
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
  if (text.empty()) throw ExportError("freeze: there is no loop " + std::string(name));
  const bool wide = dtype == Dtype::f64;
  text = replaced(text, "$T", wide ? "double" : "float");
  text = replaced(text, "$s", wide ? "d" : "f");
  text = replaced(text, "$S", wide ? "D" : "F");
  return replaced(text, "$L", wide ? "8" : "16");
}

}  // namespace ferrite::exchange::detail
