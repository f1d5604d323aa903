/// The text before all functions of a frozen file: the vector types in their forms, and what functions are made of.
#include <initializer_list>
#include <string>
#include <utility>

#include "ferrite/exchange/freeze/c_functions.h"

namespace ferrite::exchange::detail {
namespace {

/// The choice of a form, and what compilers must not do.
constexpr const char* kForms = R"(#include <stddef.h>
#include <stdint.h>

/* The form of the code: vectors of 64, 32 or 16 bytes by the vector extensions of GCC and clang, or 0 for plain C99.
   All forms compute the same bits. */
#ifndef NF_VECTOR_BYTES
#if !defined(__GNUC__)
#define NF_VECTOR_BYTES 0
#elif defined(__AVX512F__)
#define NF_VECTOR_BYTES 64
#elif defined(__AVX__) && defined(__FMA__)
#define NF_VECTOR_BYTES 32
#elif defined(__SSE2__) || defined(__aarch64__) || defined(__wasm_simd128__)
#define NF_VECTOR_BYTES 16
#else
#define NF_VECTOR_BYTES 0
#endif
#endif
#if NF_VECTOR_BYTES == 64 && !defined(__AVX512F__)
#error "vectors of 64 bytes need AVX-512"
#elif NF_VECTOR_BYTES == 32 && !defined(__AVX__)
#error "vectors of 32 bytes need AVX"
#endif

/* Floats must be computed as floats, every operation must be rounded by itself, and NaNs must be told from numbers. */
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "compile with -msse2 -mfpmath=sse: the x87 unit rounds to other digits"
#endif
#if defined(__FAST_MATH__)
#error "compile without -ffast-math"
#endif
#if NF_VECTOR_BYTES != 0 && defined(__SSE2__)
#include <immintrin.h>
#define NF_JOIN(a, b) a##b
#if NF_VECTOR_BYTES == 64
#define NF_X86(name) NF_JOIN(_mm512_, name)
#define NF_OF_X86(type) NF_JOIN(__m512, type)
#elif NF_VECTOR_BYTES == 32
#define NF_X86(name) NF_JOIN(_mm256_, name)
#define NF_OF_X86(type) NF_JOIN(__m256, type)
#else
#define NF_X86(name) NF_JOIN(_mm_, name)
#define NF_OF_X86(type) NF_JOIN(__m128, type)
#endif
#if NF_VECTOR_BYTES == 64 || defined(__AVX512VL__)
#define NF_LANE_MASKS /* loads and stores of some lanes */
#endif
#if NF_VECTOR_BYTES == 64
typedef __mmask16 nf_lanes_f;
#else
typedef uint8_t nf_lanes_f;
#endif
typedef uint8_t nf_lanes_d;
#elif NF_VECTOR_BYTES != 0 && defined(__aarch64__)
#include <arm_neon.h>
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function"
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#pragma GCC diagnostic push
#if defined(__OPTIMIZE_SIZE__) /* It misjudges small arrays whose loops it does not unroll. */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#endif

)";

/// One width: T its numbers, I and U integers of as many bits, V, N and M the suffixes of vectors of numbers, of
/// integers and the name of the number of lanes.
constexpr const char* kTypes = R"(/* ---- vectors of @T ---- */

#if NF_VECTOR_BYTES == 0
#define NF_LANES_@N 1
typedef @T nf_@s;
typedef @I nf_@i;
typedef @I nf_mask_@s; /* -1: true, 0: false */
#else
#define NF_LANES_@N ((int)(NF_VECTOR_BYTES / sizeof(@T)))
typedef @T nf_@s __attribute__((vector_size(NF_VECTOR_BYTES)));
typedef @I nf_@i __attribute__((vector_size(NF_VECTOR_BYTES)));
typedef @U nf_u@i __attribute__((vector_size(NF_VECTOR_BYTES)));
#if NF_VECTOR_BYTES == 64
typedef @K nf_mask_@s; /* a bit for each lane */
#else
typedef nf_@i nf_mask_@s; /* -1: true, 0: false */
#endif
#endif
#define NF_WIDE_@N(n) (((n) + NF_LANES_@N - 1) / NF_LANES_@N * NF_LANES_@N) /* n numbers as whole vectors */

)";

/// What both vectors of numbers and of integers have: V the suffix, T the element, N the name of the number of lanes.
constexpr const char* kMemory = R"(#if NF_VECTOR_BYTES == 0
static inline nf_@s nf_set_@s(@T v) { return v; }
static inline nf_@s nf_load_@s(const @T* from) { return *from; }
static inline void nf_store_@s(@T* to, nf_@s v) { *to = v; }
static inline nf_@s nf_get_@s(const @T* from, int n) { return n > 0 ? *from : 0; }
static inline void nf_put_@s(@T* to, nf_@s v, int n) {
  if (n > 0) *to = v;
}
static inline nf_@s nf_gather_@s(const @T* from, ptrdiff_t stride, int n) {
  (void)stride;
  return n > 0 ? *from : 0;
}
static inline void nf_scatter_@s(@T* to, ptrdiff_t stride, nf_@s v, int n) {
  (void)stride;
  if (n > 0) *to = v;
}
#else
/* v in every lane; v - 0 is v, also for -0 */
static inline nf_@s nf_set_@s(@T v) {
  const nf_@s zero = {0};
  return v - zero;
}
static inline nf_@s nf_load_@s(const @T* from) {
  nf_@s v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}
static inline void nf_store_@s(@T* to, nf_@s v) { __builtin_memcpy(to, &v, sizeof v); }
/* the first n lanes from memory, the others 0 */
static inline nf_@s nf_get_@s(const @T* from, int n) {
#if defined(NF_LANE_MASKS)
  return (nf_@s)NF_X86(maskz_loadu_@e)((@K)((1U << n) - 1U), from);
#elif NF_VECTOR_BYTES == 32 && defined(__AVX2__)
  const nf_@o zero = {0}, lanes = {@C};
  return (nf_@s)_mm256_maskload_@e((const @L*)from, (__m256i)((@I)n - zero > lanes));
#else
  nf_@s v = {0};
  for (int i = 0; i < n; ++i) v[i] = from[i];
  return v;
#endif
}
/* stores the first n lanes */
static inline void nf_put_@s(@T* to, nf_@s v, int n) {
#if defined(NF_LANE_MASKS)
  NF_X86(mask_storeu_@e)(to, (@K)((1U << n) - 1U), (NF_OF_X86(@x))v);
#elif NF_VECTOR_BYTES == 32 && defined(__AVX2__)
  const nf_@o zero = {0}, lanes = {@C};
  _mm256_maskstore_@e((@L*)to, (__m256i)((@I)n - zero > lanes), (NF_OF_X86(@x))v);
#else
  for (int i = 0; i < n; ++i) to[i] = v[i];
#endif
}
static inline nf_@s nf_gather_@s(const @T* from, ptrdiff_t stride, int n) {
  nf_@s v = {0};
  for (int i = 0; i < n; ++i) v[i] = from[i * stride];
  return v;
}
static inline void nf_scatter_@s(@T* to, ptrdiff_t stride, nf_@s v, int n) {
  for (int i = 0; i < n; ++i) to[i * stride] = v[i];
}
#endif

)";

/// Bits and integers.
constexpr const char* kIntegers = R"(static inline @I nf_bits1_@s(@T x) {
  union {
    @T number;
    @I bits;
  } u;
  u.number = x;
  return u.bits;
}
static inline @T nf_from_bits1_@s(@I x) {
  union {
    @T number;
    @I bits;
  } u;
  u.bits = x;
  return u.number;
}
#if NF_VECTOR_BYTES == 0
static inline nf_@i nf_bits_@s(nf_@s x) { return nf_bits1_@s(x); }
static inline nf_@s nf_from_bits_@s(nf_@i x) { return nf_from_bits1_@s(x); }
static inline nf_@i nf_add_@i(nf_@i a, nf_@i b) { return (@I)((@U)a + (@U)b); }
static inline nf_@i nf_sub_@i(nf_@i a, nf_@i b) { return (@I)((@U)a - (@U)b); }
static inline nf_@i nf_shl_@i(nf_@i a, int n) { return (@I)((@U)a << n); }
#else
static inline nf_@i nf_bits_@s(nf_@s x) { return (nf_@i)x; }
static inline nf_@s nf_from_bits_@s(nf_@i x) { return (nf_@s)x; }
static inline nf_@i nf_add_@i(nf_@i a, nf_@i b) { return (nf_@i)((nf_u@i)a + (nf_u@i)b); }
static inline nf_@i nf_sub_@i(nf_@i a, nf_@i b) { return (nf_@i)((nf_u@i)a - (nf_u@i)b); }
static inline nf_@i nf_shl_@i(nf_@i a, int n) { return (nf_@i)((nf_u@i)a << n); }
#endif
static inline nf_@i nf_and_@i(nf_@i a, nf_@i b) { return a & b; }
static inline nf_@i nf_or_@i(nf_@i a, nf_@i b) { return a | b; }
static inline nf_@i nf_xor_@i(nf_@i a, nf_@i b) { return a ^ b; }
static inline nf_@s nf_and_@s(nf_@s a, nf_@s b) { return nf_from_bits_@s(nf_bits_@s(a) & nf_bits_@s(b)); }
static inline nf_@s nf_or_@s(nf_@s a, nf_@s b) { return nf_from_bits_@s(nf_bits_@s(a) | nf_bits_@s(b)); }
/* b without the bits of a */
static inline nf_@s nf_without_@s(nf_@s a, nf_@s b) { return nf_from_bits_@s(~nf_bits_@s(a) & nf_bits_@s(b)); }
static inline nf_@s nf_abs_@s(nf_@s x) { return nf_without_@s(nf_set_@s((@T)-0.0), x); }
static inline nf_@s nf_sign_bit_@s(nf_@s x) { return nf_and_@s(nf_set_@s((@T)-0.0), x); }

)";

/// Integers of 32 bits shift with their sign, of 64 bits without; only those of 32 bits are converted.
constexpr const char* kIntegersOfFloats = R"(static inline nf_i nf_shr_i(nf_i a, int n) { return a >> n; }
#if NF_VECTOR_BYTES == 0
static inline nf_f nf_from_int_f(nf_i x) { return (float)x; }
static inline nf_i nf_to_int_f(nf_f x) {
  return x > -2147483648.0f && x < 2147483648.0f ? (int32_t)x : (int32_t)-2147483647 - 1;
}
#else
static inline nf_f nf_from_int_f(nf_i x) { return __builtin_convertvector(x, nf_f); }
static inline nf_i nf_to_int_f(nf_f x) { return __builtin_convertvector(x, nf_i); }
#endif

)";
constexpr const char* kIntegersOfDoubles = R"(#if NF_VECTOR_BYTES == 0
static inline nf_l nf_shr_l(nf_l a, int n) { return (int64_t)((uint64_t)a >> n); }
#else
static inline nf_l nf_shr_l(nf_l a, int n) { return (nf_l)((nf_ul)a >> n); }
#endif

)";

/// Rounding of sums to odd.
constexpr const char* kToOdd =
    R"(/* What is added to the bits of a rounded sum, of which `rest` was lost, so that it is rounded to odd: of the two numbers
   around the exact sum, to the one with an odd last bit. */
static inline uint64_t nf_to_odd(double sum, double rest) {
  union {
    double number;
    uint64_t bits;
  } s, r;
  s.number = sum;
  r.number = rest;
  /* 1, or -1 where the sum is too large; nothing where it is exact, infinite or odd already */
  return (1 - 2 * ((s.bits ^ r.bits) >> 63)) & (0 - ((uint64_t)((rest < 0) | (rest > 0)) & ~s.bits & 1));
}

)";

/// a * b + c rounded once.
constexpr const char* kFmaOfFloats = R"(/* a b + c, rounded once */
#if defined(__GNUC__) && !defined(NF_INTEGER_FMA) && \
    (defined(__FMA__) || defined(__aarch64__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMAF) || \
     defined(__riscv_flen))
static inline float nf_fma1_f(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#elif defined(__GNUC__) && (defined(NF_INTEGER_FMA) || defined(__riscv) || defined(__XTENSA__) || defined(__AVR__) || \
                            defined(__mips_soft_float) || \
                            (defined(__arm__) && !(defined(__ARM_FP) && (__ARM_FP & 8))))
/* By integers, on machines that compute doubles in software: four times as fast there. NF_INTEGER_FMA chooses it
   elsewhere, for tests. It is long, so it is called. */
__attribute__((noinline, unused)) static float nf_fma1_f(float a, float b, float c) {
  union {
    float number;
    uint32_t bits;
  } x, y, z;
  uint32_t of_x, of_y, of_z, sign;
  int32_t x_exponent, y_exponent, z_exponent, exponent, shift;
  uint64_t product, addend, sum;
  x.number = a;
  y.number = b;
  z.number = c;
  x_exponent = (int32_t)(x.bits >> 23 & 255);
  y_exponent = (int32_t)(y.bits >> 23 & 255);
  z_exponent = (int32_t)(z.bits >> 23 & 255);
  if (z_exponent == 255 && x_exponent != 255 && y_exponent != 255) return c;
  if (x_exponent == 255 || y_exponent == 255 || z_exponent == 255 || (x.bits << 1) == 0 || (y.bits << 1) == 0)
    return a * b + c;
  /* the digits, with the leading bit at 23 unless the number is 0 */
  of_x = (x.bits & 0x7fffff) | (x_exponent > 0 ? 0x800000U : 0);
  of_y = (y.bits & 0x7fffff) | (y_exponent > 0 ? 0x800000U : 0);
  of_z = (z.bits & 0x7fffff) | (z_exponent > 0 ? 0x800000U : 0);
  if (x_exponent == 0) for (x_exponent = 1; of_x < 0x800000; --x_exponent) of_x <<= 1;
  if (y_exponent == 0) for (y_exponent = 1; of_y < 0x800000; --y_exponent) of_y <<= 1;
  if (z_exponent == 0 && of_z != 0) for (z_exponent = 1; of_z < 0x800000; --z_exponent) of_z <<= 1;
  /* The leading bits are at 60 or 61, and both have one exponent after the smaller is shifted; bits that are lost leave
     a 1 in the last place. */
  sign = (x.bits ^ y.bits) >> 31;
  product = (uint64_t)of_x * of_y << 14;
  addend = (uint64_t)of_z << 38;
  exponent = x_exponent + y_exponent - 314;
  shift = exponent - (z_exponent - 188);
  if (of_z != 0 && shift > 0) {
    addend = shift > 62 ? 1 : addend >> shift | ((addend << (64 - shift)) != 0);
  } else if (of_z != 0 && shift < 0) {
    product = shift < -62 ? 1 : product >> -shift | ((product << (64 + shift)) != 0);
    exponent -= shift;
  }
  if (sign == z.bits >> 31) {
    sum = product + addend;
  } else if (product >= addend) {
    sum = product - addend;
  } else {
    sum = addend - product;
    sign ^= 1;
  }
  if (sum == 0) return 0;
  /* The leading bit moves to 62; the exponent becomes that of the result, as it is stored. */
  shift = (int32_t)__builtin_clzl((unsigned long)(sum >> 32 != 0 ? sum >> 32 : sum)) + 32 - (int32_t)(8 * sizeof(long));
  shift += sum >> 32 != 0 ? -1 : 31;
  sum <<= shift;
  exponent += 189 - shift;
  if (exponent <= 0) {
    shift = 1 - exponent;
    sum = shift > 62 ? 1 : sum >> shift | ((sum << (64 - shift)) != 0);
    exponent = 0;
  }
  /* 24 of 63 bits stay, rounded to the nearest, halves to even. A carry goes into the exponent. */
  of_x = (uint32_t)(sum >> 39);
  of_y = (uint32_t)(sum >> 7) | ((sum & 127) != 0);
  of_x += of_y > 0x80000000U || (of_y == 0x80000000U && (of_x & 1) != 0);
  if (exponent > 0) of_x += (uint32_t)(exponent - 1) << 23;
  if (of_x > 0x7f800000) of_x = 0x7f800000;
  z.bits = sign << 31 | of_x;
  return z.number;
}
#else
static inline float nf_fma1_f(float a, float b, float c) {
  /* The product is exact in double. The sum is rounded to odd, so that rounding it again to float rounds as if once. */
  const double product = (double)a * (double)b, addend = (double)c, sum = product + addend;
  const double part = sum - product, rest = (product - (sum - part)) + (addend - part);
  union {
    double number;
    uint64_t bits;
  } odd;
  odd.number = sum;
  odd.bits += nf_to_odd(sum, rest);
  return (float)odd.number;
}
#endif
)";
constexpr const char* kFmaOfDoubles = R"(/* a b + c, rounded once */
#if defined(__GNUC__) && (defined(__FMA__) || defined(__aarch64__) || defined(__FP_FAST_FMA) || \
                          (defined(__ARM_FEATURE_FMA) && (__ARM_FP & 8)) || \
                          (defined(__riscv_flen) && __riscv_flen >= 64))
static inline double nf_fma1_d(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline uint64_t nf_double_bits(double x) {
  union {
    double number;
    uint64_t bits;
  } u;
  u.number = x;
  return u.bits;
}
static inline double nf_double_of(uint64_t bits) {
  union {
    double number;
    uint64_t bits;
  } u;
  u.bits = bits;
  return u.number;
}
/* x, not 0, as a whole number of 53 bits times 2^exponent */
static inline uint64_t nf_parts(double x, int* exponent) {
  uint64_t digits = nf_double_bits(x) & 0xfffffffffffffULL;
  *exponent = (int)(nf_double_bits(x) >> 52 & 2047) - 1075;
  if (*exponent == -1075) {
    *exponent = -1074;
    while ((digits >> 52) == 0) digits <<= 1, --*exponent;
    return digits;
  }
  return digits | 0x10000000000000ULL;
}
/* Shifts high and low to the right; bits that are lost leave a 1 in the last place. */
static inline void nf_shift_right(uint64_t* high, uint64_t* low, int n) {
  uint64_t lost = 0;
  for (; n >= 64; n -= 64) {
    lost |= *low;
    *low = *high;
    *high = 0;
    if (n > 256) n = 256;
  }
  if (n > 0) {
    lost |= *low << (64 - n);
    *low = *low >> n | *high << (64 - n);
    *high >>= n;
  }
  *low |= lost != 0;
}
/* a b + c by integers, for finite operands that are not 0 */
static double nf_fma_of_integers(double a, double b, double c) {
  int of_a, of_b, exponent;
  const uint64_t x = nf_parts(a, &of_a), y = nf_parts(b, &of_b), z = nf_parts(c, &exponent);
  const uint64_t x0 = x & 0xffffffffU, x1 = x >> 32, y0 = y & 0xffffffffU, y1 = y >> 32;
  const uint64_t middle = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (middle & 0xffffffffU);
  uint64_t high = x1 * y1 + (middle >> 32) + (other >> 32), low = other << 32 | (x0 * y0 & 0xffffffffU);
  uint64_t c_high = z >> 11, c_low = z << 53;
  const int above = exponent - 53 - (of_a + of_b); /* by how much the exponent of c is larger than the product's */
  uint64_t negative = (nf_double_bits(a) ^ nf_double_bits(b)) >> 63;
  exponent = of_a + of_b;
  if (above >= 0 && above <= 4) {
    c_high = c_high << above | (above > 0 ? c_low >> (64 - above) : 0);
    c_low <<= above;
  } else if (above < 0 && above >= -4) {
    high = high << -above | low >> (64 + above);
    low <<= -above;
    exponent += above;
  } else if (above > 0) {
    nf_shift_right(&high, &low, above);
    exponent += above;
  } else {
    nf_shift_right(&c_high, &c_low, -above);
  }
  if (negative == nf_double_bits(c) >> 63) {
    low += c_low;
    high += c_high + (low < c_low);
  } else if (high > c_high || (high == c_high && low >= c_low)) {
    high -= c_high + (low < c_low);
    low -= c_low;
  } else {
    high = c_high - high - (c_low < low);
    low = c_low - low;
    negative ^= 1;
  }
  if ((high | low) == 0) return 0.0;
  while ((high >> 63) == 0) {
    high = high << 1 | low >> 63;
    low <<= 1;
    --exponent;
  }
  exponent += 127 + 1023; /* of the first bit, as it is stored */
  if (exponent > 2046) return nf_double_of(negative << 63 | 0x7ff0000000000000ULL);
  if (exponent < 1) {
    nf_shift_right(&high, &low, 1 - exponent);
    exponent = 1;
  }
  high |= low != 0;
  low = (uint64_t)(exponent - 1) << 52;
  low += (high >> 11) + ((high & 0x7ff) > 0x400 || (high & 0xfff) == 0xc00);
  return nf_double_of(negative << 63 | low);
}
/* The product is split into two doubles, and its sum with c rounded to odd before it is rounded (Boldo and Melquiond,
   "Emulation of a FMA and correctly rounded sums", 2008); by integers where the parts might not be normal numbers. */
static inline double nf_fma1_d(double a, double b, double c) {
  const double product = a * b, size = product < 0 ? -product : product;
  const double a_size = a < 0 ? -a : a, b_size = b < 0 ? -b : b, c_size = c < 0 ? -c : c;
  if (size > 1e-250 && size < 1e250 && a_size < 1e250 && b_size < 1e250 && c_size < 1e290) {
    const double a_far = a * 134217729.0, b_far = b * 134217729.0;
    const double a1 = a_far - (a_far - a), b1 = b_far - (b_far - b), a0 = a - a1, b0 = b - b1;
    const double product_rest = ((a1 * b1 - product) + a1 * b0 + a0 * b1) + a0 * b0;
    const double low = c + product_rest, low_part = low - c;
    const double low_rest = (c - (low - low_part)) + (product_rest - low_part);
    const double high = product + low, high_part = high - product;
    const double high_rest = (product - (high - high_part)) + (low - high_part);
    const double sum = low_rest + high_rest, sum_part = sum - low_rest;
    const double rest = (low_rest - (sum - sum_part)) + (high_rest - sum_part);
    return high + nf_double_of(nf_double_bits(sum) + nf_to_odd(sum, rest));
  }
  if (!(a_size < 1.0 / 0.0 && b_size < 1.0 / 0.0) || a_size == 0 || b_size == 0) return product + c;
  if (!(c_size < 1.0 / 0.0)) return c + c;
  return c_size == 0 ? product : nf_fma_of_integers(a, b, c);
}
#endif
)";

/// The same for vectors of a machine without such an instruction.
constexpr const char* kFmaOfFloatLanes =
    R"(#if NF_VECTOR_BYTES != 0 && NF_VECTOR_BYTES != 64 && !defined(__FMA__) && !defined(__aarch64__)
typedef float nf_part __attribute__((vector_size(NF_VECTOR_BYTES / 2)));
typedef double nf_part_wide __attribute__((vector_size(NF_VECTOR_BYTES)));
typedef uint64_t nf_part_bits __attribute__((vector_size(NF_VECTOR_BYTES)));
/* a half of the lanes in double */
static inline nf_part_wide nf_wide_part(nf_f x, int upper) {
#if NF_VECTOR_BYTES == 32
  return _mm256_cvtps_pd(upper ? _mm256_extractf128_ps(x, 1) : _mm256_castps256_ps128(x));
#elif defined(__SSE2__)
  return _mm_cvtps_pd(upper ? _mm_movehl_ps(x, x) : (__m128)x);
#else
  nf_part part[2];
  __builtin_memcpy(part, &x, sizeof x);
  return __builtin_convertvector(part[upper], nf_part_wide);
#endif
}
static inline nf_f nf_of_parts(nf_part_wide lower, nf_part_wide upper) {
#if NF_VECTOR_BYTES == 32
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(lower)), _mm256_cvtpd_ps(upper), 1);
#elif defined(__SSE2__)
  return _mm_movelh_ps(_mm_cvtpd_ps(lower), _mm_cvtpd_ps(upper));
#else
  nf_part part[2];
  nf_f x;
  part[0] = __builtin_convertvector(lower, nf_part);
  part[1] = __builtin_convertvector(upper, nf_part);
  __builtin_memcpy(&x, part, sizeof x);
  return x;
#endif
}
/* nf_fma1_f before its last rounding, of a half of the lanes */
static inline nf_part_wide nf_fma_part(nf_part_wide a, nf_part_wide b, nf_part_wide c) {
  const nf_part_wide product = a * b, sum = product + c, part = sum - product, zero = {0};
  const nf_part_wide rest = (product - (sum - part)) + (c - part);
  const nf_part_bits inexact = (nf_part_bits)((rest < zero) | (rest > zero)), s = (nf_part_bits)sum;
  const nf_part_bits step = 1 - (((s ^ (nf_part_bits)rest) >> 63) << 1);
  return (nf_part_wide)(s + (step & (0 - (inexact & ~s & 1))));
}
static inline nf_f nf_fma_lanes_f(nf_f a, nf_f b, nf_f c) {
  return nf_of_parts(nf_fma_part(nf_wide_part(a, 0), nf_wide_part(b, 0), nf_wide_part(c, 0)),
                     nf_fma_part(nf_wide_part(a, 1), nf_wide_part(b, 1), nf_wide_part(c, 1)));
}
#endif

)";
constexpr const char* kFmaOfDoubleLanes =
    R"(#if NF_VECTOR_BYTES != 0 && NF_VECTOR_BYTES != 64 && !defined(__FMA__) && !defined(__aarch64__)
static inline nf_d nf_fma_lanes_d(nf_d a, nf_d b, nf_d c) {
  for (int i = 0; i < NF_LANES_D; ++i) a[i] = nf_fma1_d(a[i], b[i], c[i]);
  return a;
}
#endif

)";

/// Arithmetic of numbers and comparisons.
constexpr const char* kNumbers = R"(#if NF_VECTOR_BYTES == 0
static inline nf_@s nf_fma_@s(nf_@s a, nf_@s b, nf_@s c) { return nf_fma1_@s(a, b, c); }
static inline nf_mask_@s nf_is_less_@s(nf_@s a, nf_@s b) { return -(a < b); }
static inline nf_mask_@s nf_is_less_equal_@s(nf_@s a, nf_@s b) { return -(a <= b); }
static inline nf_mask_@s nf_is_equal_@s(nf_@s a, nf_@s b) { return -(a == b); }
static inline nf_mask_@s nf_is_greater_or_nan_@s(nf_@s a, nf_@s b) { return -!(a <= b); }
static inline nf_mask_@s nf_is_nan_@s(nf_@s x) { return -(x != x); }
static inline nf_@s nf_select_@s(nf_mask_@s m, nf_@s a, nf_@s b) { return m ? a : b; }
static inline nf_@s nf_or_zero_@s(nf_mask_@s m, nf_@s a) { return m ? a : 0; }
static inline nf_mask_@s nf_mask_of_@s(nf_@i x) { return x; }
static inline nf_@i nf_truth_@s(nf_mask_@s m) { return m; }
static inline int nf_all_@s(nf_mask_@s m) { return m != 0; }
#elif NF_VECTOR_BYTES == 64
static inline nf_@s nf_fma_@s(nf_@s a, nf_@s b, nf_@s c) { return _mm512_fmadd_@p(a, b, c); }
static inline nf_mask_@s nf_is_less_@s(nf_@s a, nf_@s b) { return _mm512_cmp_@p_mask(a, b, _CMP_LT_OQ); }
static inline nf_mask_@s nf_is_less_equal_@s(nf_@s a, nf_@s b) { return _mm512_cmp_@p_mask(a, b, _CMP_LE_OQ); }
static inline nf_mask_@s nf_is_equal_@s(nf_@s a, nf_@s b) { return _mm512_cmp_@p_mask(a, b, _CMP_EQ_OQ); }
static inline nf_mask_@s nf_is_greater_or_nan_@s(nf_@s a, nf_@s b) { return _mm512_cmp_@p_mask(a, b, _CMP_NLE_UQ); }
static inline nf_mask_@s nf_is_nan_@s(nf_@s x) { return _mm512_cmp_@p_mask(x, x, _CMP_UNORD_Q); }
static inline nf_@s nf_select_@s(nf_mask_@s m, nf_@s a, nf_@s b) { return _mm512_mask_blend_@p(m, b, a); }
static inline nf_@s nf_or_zero_@s(nf_mask_@s m, nf_@s a) { return _mm512_maskz_mov_@p(m, a); }
static inline nf_mask_@s nf_mask_of_@s(nf_@i x) {
  return _mm512_cmplt_@e_mask((__m512i)x, _mm512_setzero_si512());
}
static inline nf_@i nf_truth_@s(nf_mask_@s m) { return (nf_@i)_mm512_maskz_set1_@e(m, -1); }
static inline int nf_all_@s(nf_mask_@s m) { return m == (@K)-1; }
#else
static inline nf_@s nf_fma_@s(nf_@s a, nf_@s b, nf_@s c) {
#if defined(__FMA__)
  return NF_X86(fmadd_@p)(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_@a(c, a, b);
#else
  return nf_fma_lanes_@s(a, b, c);
#endif
}
static inline nf_mask_@s nf_is_less_@s(nf_@s a, nf_@s b) { return (nf_@i)(a < b); }
static inline nf_mask_@s nf_is_less_equal_@s(nf_@s a, nf_@s b) { return (nf_@i)(a <= b); }
static inline nf_mask_@s nf_is_equal_@s(nf_@s a, nf_@s b) { return (nf_@i)(a == b); }
static inline nf_mask_@s nf_is_greater_or_nan_@s(nf_@s a, nf_@s b) { return ~(nf_@i)(a <= b); }
static inline nf_mask_@s nf_is_nan_@s(nf_@s x) { return (nf_@i)(x != x); }
static inline nf_@s nf_select_@s(nf_mask_@s m, nf_@s a, nf_@s b) {
#if defined(__SSE4_1__)
  return NF_X86(blendv_@p)(b, a, (nf_@s)m);
#else
  return (nf_@s)(((nf_@i)a & m) | ((nf_@i)b & ~m));
#endif
}
static inline nf_@s nf_or_zero_@s(nf_mask_@s m, nf_@s a) { return (nf_@s)((nf_@i)a & m); }
static inline nf_mask_@s nf_mask_of_@s(nf_@i x) { return x; }
static inline nf_@i nf_truth_@s(nf_mask_@s m) { return m; }
static inline int nf_all_@s(nf_mask_@s m) {
#if defined(__SSE2__)
  return NF_X86(movemask_@p)((nf_@s)m) == (1 << NF_LANES_@N) - 1;
#else
  int all = 1;
  for (int i = 0; i < NF_LANES_@N; ++i) all &= m[i] != 0;
  return all;
#endif
}
#endif
#if NF_VECTOR_BYTES == 64
static inline nf_mask_@s nf_both_@s(nf_mask_@s a, nf_mask_@s b) { return (nf_mask_@s)(a & b); }
static inline nf_mask_@s nf_either_@s(nf_mask_@s a, nf_mask_@s b) { return (nf_mask_@s)(a | b); }
#else
static inline nf_mask_@s nf_both_@s(nf_mask_@s a, nf_mask_@s b) { return a & b; }
static inline nf_mask_@s nf_either_@s(nf_mask_@s a, nf_mask_@s b) { return a | b; }
#endif
/* the smaller and the larger one; the first where one is NaN or both are equal */
static inline nf_@s nf_first_min_@s(nf_@s a, nf_@s b) {
#if NF_VECTOR_BYTES == 64
  return _mm512_maskz_min_@p((@K)-1, b, a);
#elif NF_VECTOR_BYTES != 0 && defined(__SSE2__)
  return NF_X86(min_@p)(b, a);
#else
  return nf_select_@s(nf_is_less_@s(b, a), b, a);
#endif
}
static inline nf_@s nf_first_max_@s(nf_@s a, nf_@s b) {
#if NF_VECTOR_BYTES == 64
  return _mm512_maskz_max_@p((@K)-1, b, a);
#elif NF_VECTOR_BYTES != 0 && defined(__SSE2__)
  return NF_X86(max_@p)(b, a);
#else
  return nf_select_@s(nf_is_less_@s(a, b), b, a);
#endif
}
/* the nearest whole number, halves to even */
#if NF_VECTOR_BYTES == 64
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion" /* of the compiler's own macro */
static inline nf_@s nf_nearest_@s(nf_@s x) { return _mm512_maskz_roundscale_@p((@K)-1, x, 8); }
#pragma GCC diagnostic pop
#else
static inline nf_@s nf_nearest_@s(nf_@s x) {
#if NF_VECTOR_BYTES != 0 && defined(__SSE4_1__)
  return NF_X86(round_@p)(x, 8);
#elif NF_VECTOR_BYTES != 0 && defined(__aarch64__)
  return vrndnq_@a(x);
#else
  /* A number added to @W becomes whole; all larger ones are. */
  const nf_@s whole = nf_set_@s(@W), size = nf_abs_@s(x), near = (size + whole) - whole;
  return nf_select_@s(nf_is_less_@s(size, whole), nf_or_@s(near, nf_sign_bit_@s(x)), x);
#endif
}
#endif

)";

using Words = std::initializer_list<std::pair<const char*, const char*>>;

std::string with(std::string text, Words words) {
  for (const auto& [from, to] : words)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos;)
      text.replace(at, std::char_traits<char>::length(from), to);
  return text;
}

constexpr Words kFloatWords = {{"@T", "float"}, {"@I", "int32_t"}, {"@U", "uint32_t"},  {"@s", "f"},
                               {"@i", "i"},     {"@N", "F"},       {"@K", "__mmask16"}, {"@p", "ps"},
                               {"@e", "epi32"}, {"@a", "f32"},     {"@W", "8388608.0f"}};
constexpr Words kDoubleWords = {{"@T", "double"}, {"@I", "int64_t"}, {"@U", "uint64_t"},          {"@s", "d"},
                                {"@i", "l"},      {"@N", "D"},       {"@K", "__mmask8"},          {"@p", "pd"},
                                {"@e", "epi64"},  {"@a", "f64"},     {"@W", "4503599627370496.0"}};

constexpr Words kLanesOfFloats = {
    {"@K", "nf_lanes_f"}, {"@I", "int32_t"}, {"@o", "i"}, {"@C", "0, 1, 2, 3, 4, 5, 6, 7"}};
constexpr Words kLanesOfDoubles = {{"@K", "nf_lanes_d"}, {"@I", "int64_t"}, {"@o", "l"}, {"@C", "0, 1, 2, 3"}};

std::string floats() {
  const Words floats = {{"@T", "float"}, {"@s", "f"}, {"@e", "ps"}, {"@x", ""}, {"@L", "float"}};
  const Words integers = {{"@T", "int32_t"}, {"@s", "i"}, {"@e", "epi32"}, {"@x", "i"}, {"@L", "int"}};
  return with(kTypes, kFloatWords) + with(with(kMemory, floats), kLanesOfFloats) +
         with(with(kMemory, integers), kLanesOfFloats) + with(kIntegers, kFloatWords) + kIntegersOfFloats +
         kFmaOfFloats + kFmaOfFloatLanes + with(kNumbers, kFloatWords);
}
std::string doubles() {
  const Words doubles = {{"@T", "double"}, {"@s", "d"}, {"@e", "pd"}, {"@x", "d"}, {"@L", "double"}};
  const Words integers = {{"@T", "int64_t"}, {"@s", "l"}, {"@e", "epi64"}, {"@x", "i"}, {"@L", "long long"}};
  return with(kTypes, kDoubleWords) + with(with(kMemory, doubles), kLanesOfDoubles) +
         with(with(kMemory, integers), kLanesOfDoubles) + with(kIntegers, kDoubleWords) + kIntegersOfDoubles +
         kFmaOfDoubles + kFmaOfDoubleLanes + with(kNumbers, kDoubleWords);
}

}  // namespace

std::string c_vectors(bool with_floats, bool with_doubles) {
  return kForms + std::string(kToOdd) + (with_floats ? floats() : std::string()) +
         (with_doubles ? doubles() : std::string());
}
std::string c_end() {
  return "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC diagnostic pop\n#pragma GCC pop_options\n#endif\n";
}
std::string c_vectors(Dtype dtype) { return c_vectors(dtype == Dtype::f32, dtype == Dtype::f64); }

}  // namespace ferrite::exchange::detail
