#pragma once
/// One vector register of numbers, in the vector types of g++ and clang: arithmetic, comparisons, shifts and selection
/// are operators of the language on every instruction set. This header adds what has no operator: unaligned loads and
/// stores, multiply-add, rounding, minimum and maximum, and the transposition of a square.
///
/// docs/numerics.md compares these types with Eigen's packets and with Highway.
#ifdef FERRITE_WRITTEN
#include "ferrite/tensor/kernel/written.h"
#else
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "ferrite/tensor/kernel/level.h"

namespace ferrite::detail::FERRITE_LEVEL {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
/// Whether the machine has an instruction that rounds a * b + c once (x86: FMA; aarch64 always).
#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool kRoundsOnce = true;
#else
inline constexpr bool kRoundsOnce = false;
#endif

/// Whether the machine has an instruction that rounds to whole numbers (x86: from SSE4.1 on).
#if defined(__AVX__) || defined(__aarch64__)
inline constexpr bool kRoundsToWhole = true;
#else
inline constexpr bool kRoundsToWhole = false;
#endif

template <class T>
struct VectorsOf;
template <>
struct VectorsOf<float> {
  using Numbers [[gnu::vector_size(kVectorBytes)]] = float;
  using Bits [[gnu::vector_size(kVectorBytes)]] = std::int32_t;
  using Anywhere [[gnu::vector_size(kVectorBytes), gnu::aligned(4), gnu::may_alias]] = float;
};
template <>
struct VectorsOf<double> {
  using Numbers [[gnu::vector_size(kVectorBytes)]] = double;
  using Bits [[gnu::vector_size(kVectorBytes)]] = std::int64_t;
  using Anywhere [[gnu::vector_size(kVectorBytes), gnu::aligned(8), gnu::may_alias]] = double;
};

/// A register of T, float or double, and one of integers of its width, the result of comparisons: -1 is true, 0 false.
template <class T>
using RawPacket = typename VectorsOf<T>::Numbers;
template <class T>
using RawBits = typename VectorsOf<T>::Bits;
/// Number of lanes of a register of T.
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

using RawFloats = RawPacket<float>;
using RawDoubles = RawPacket<double>;
/// Integers on which the functions of packets compute: 32-bit lanes shift with their sign, 64-bit lanes without.
using Bits = RawBits<float>;
using Bits64 [[gnu::vector_size(kVectorBytes)]] = std::uint64_t;

/// Returns v in every lane. (v - 0 is v, also for -0.)
template <class T>
[[gnu::always_inline]] inline RawPacket<T> set_raw(T v) {
  return v - RawPacket<T>{};
}
template <class T>
[[gnu::always_inline]] inline RawPacket<T> load_raw(const T* from) {
  return *reinterpret_cast<const typename VectorsOf<T>::Anywhere*>(from);
}
template <class T>
[[gnu::always_inline]] inline void store_raw(T* to, std::type_identity_t<RawPacket<T> > v) {
  *reinterpret_cast<typename VectorsOf<T>::Anywhere*>(to) = v;
}
/// Keeps a packet in a register where the compiler would read it from memory for each of its uses.
template <class V>
[[gnu::always_inline]] inline void hold_raw(V& v) {
#if defined(__AVX512F__)
  asm("" : "+v"(v));
#elif defined(__x86_64__)
  asm("" : "+x"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
}
/// Stores a register, bypassing the caches; `to` is aligned to the size of the register. Other threads see it after a
/// fence.
[[gnu::always_inline]] inline void stream_raw(float* to, RawFloats v) {
#if defined(__AVX512F__)
  _mm512_stream_ps(to, v);
#elif defined(__AVX__)
  _mm256_stream_ps(to, v);
#elif defined(__SSE2__)
  _mm_stream_ps(to, v);
#else
  store_raw(to, v);
#endif
}
#if defined(__AVX512F__) || defined(__AVX2__)
/// The lanes that are read or written: a bit for each lane with AVX-512, else all ones or all zeros in the lane.
#if defined(__AVX512F__)
template <class T>
using LaneMask = std::conditional_t<kLanes<T> == 16, __mmask16, __mmask8>;
[[gnu::always_inline]] inline RawFloats load_raw(const float* x, LaneMask<float> lanes) {
  return _mm512_maskz_loadu_ps(lanes, x);
}
[[gnu::always_inline]] inline RawDoubles load_raw(const double* x, LaneMask<double> lanes) {
  return _mm512_maskz_loadu_pd(lanes, x);
}
[[gnu::always_inline]] inline void store_raw(float* to, RawFloats v, LaneMask<float> lanes) {
  _mm512_mask_storeu_ps(to, lanes, v);
}
[[gnu::always_inline]] inline void store_raw(double* to, RawDoubles v, LaneMask<double> lanes) {
  _mm512_mask_storeu_pd(to, lanes, v);
}
#else
template <class T>
using LaneMask = __m256i;
[[gnu::always_inline]] inline RawFloats load_raw(const float* x, __m256i lanes) { return _mm256_maskload_ps(x, lanes); }
[[gnu::always_inline]] inline RawDoubles load_raw(const double* x, __m256i lanes) {
  return _mm256_maskload_pd(x, lanes);
}
[[gnu::always_inline]] inline void store_raw(float* to, RawFloats v, __m256i lanes) {
  _mm256_maskstore_ps(to, lanes, v);
}
[[gnu::always_inline]] inline void store_raw(double* to, RawDoubles v, __m256i lanes) {
  _mm256_maskstore_pd(to, lanes, v);
}
#endif
#endif
/// Returns the numbers 0, 1, 2, ... of the lanes.
template <class T>
[[gnu::always_inline]] inline RawBits<T> lane_numbers() {
  return []<int... i>(std::integer_sequence<int, i...>) { return RawBits<T>{i...}; }
  (std::make_integer_sequence<int, kLanes<T> >());
}
[[gnu::always_inline]] inline RawBits<float> raw_bits(RawFloats x) { return std::bit_cast<RawBits<float> >(x); }
[[gnu::always_inline]] inline RawBits<double> raw_bits(RawDoubles x) { return std::bit_cast<RawBits<double> >(x); }
[[gnu::always_inline]] inline RawFloats raw_from_bits(RawBits<float> x) { return std::bit_cast<RawFloats>(x); }
[[gnu::always_inline]] inline RawDoubles raw_from_bits(RawBits<double> x) { return std::bit_cast<RawDoubles>(x); }
[[gnu::always_inline]] inline Bits64 raw_unsigned_bits(RawDoubles x) { return std::bit_cast<Bits64>(x); }
[[gnu::always_inline]] inline RawDoubles raw_from_bits(Bits64 x) { return std::bit_cast<RawDoubles>(x); }
/// Converts integers to floats, and whole floats below 2^31 to integers.
[[gnu::always_inline]] inline RawFloats raw_to_floats(Bits x) { return __builtin_convertvector(x, RawFloats); }
[[gnu::always_inline]] inline Bits raw_to_bits(RawFloats x) { return __builtin_convertvector(x, Bits); }

/// Returns a vector that holds v in every lane.
inline Bits bits(std::int32_t v) { return Bits{} + v; }
inline Bits64 bits64(std::uint64_t v) { return Bits64{} + v; }

// ---- one instruction each ------------------------------------------------------------------------------

/// Return a * b + c; the smaller and the larger of two, which is `a` where either is NaN or both are equal (0 and -0
/// are); the square root; and, where kRoundsToWhole, the nearest whole number, halves to even.
#define FERRITE_ON_VECTORS(fma, min, max, sqrt, V)                        \
  [[gnu::always_inline]] inline V fma_raw(V a, V b, V c) { return fma; }  \
  [[gnu::always_inline]] inline V min_raw(V a, V b) { return min(b, a); } \
  [[gnu::always_inline]] inline V max_raw(V a, V b) { return max(b, a); } \
  [[gnu::always_inline]] inline V sqrt_raw(V x) { return sqrt(x); }
#define FERRITE_ROUNDING(nearest, V) \
  [[gnu::always_inline]] inline V nearest_raw(V x) { return nearest; }

/// Return the smaller and the larger of two as the instructions of x86 do: `a` where either is NaN or both are equal.
/// (Those of NEON return a NaN wherever it is, and tell 0 from -0.)
template <class V>
[[gnu::always_inline]] inline V smaller(V b, V a) {
  return b < a ? b : a;
}
template <class V>
[[gnu::always_inline]] inline V larger(V b, V a) {
  return b > a ? b : a;
}

#if defined(__AVX512F__)
FERRITE_ON_VECTORS(_mm512_fmadd_ps(a, b, c), _mm512_min_ps, _mm512_max_ps, _mm512_sqrt_ps, RawFloats)
FERRITE_ON_VECTORS(_mm512_fmadd_pd(a, b, c), _mm512_min_pd, _mm512_max_pd, _mm512_sqrt_pd, RawDoubles)
FERRITE_ROUNDING(_mm512_roundscale_ps(x, 8), RawFloats)
FERRITE_ROUNDING(_mm512_roundscale_pd(x, 8), RawDoubles)
#elif defined(__AVX__)
#ifdef __FMA__
FERRITE_ON_VECTORS(_mm256_fmadd_ps(a, b, c), _mm256_min_ps, _mm256_max_ps, _mm256_sqrt_ps, RawFloats)
FERRITE_ON_VECTORS(_mm256_fmadd_pd(a, b, c), _mm256_min_pd, _mm256_max_pd, _mm256_sqrt_pd, RawDoubles)
#else
FERRITE_ON_VECTORS(a* b + c, _mm256_min_ps, _mm256_max_ps, _mm256_sqrt_ps, RawFloats)
FERRITE_ON_VECTORS(a* b + c, _mm256_min_pd, _mm256_max_pd, _mm256_sqrt_pd, RawDoubles)
#endif
FERRITE_ROUNDING(_mm256_round_ps(x, 8), RawFloats)
FERRITE_ROUNDING(_mm256_round_pd(x, 8), RawDoubles)
#elif defined(__aarch64__)
FERRITE_ON_VECTORS(vfmaq_f32(c, a, b), smaller, larger, vsqrtq_f32, RawFloats)
FERRITE_ON_VECTORS(vfmaq_f64(c, a, b), smaller, larger, vsqrtq_f64, RawDoubles)
FERRITE_ROUNDING(vrndnq_f32(x), RawFloats)
FERRITE_ROUNDING(vrndnq_f64(x), RawDoubles)
#elif defined(__SSE2__)
FERRITE_ON_VECTORS(a* b + c, _mm_min_ps, _mm_max_ps, _mm_sqrt_ps, RawFloats)
FERRITE_ON_VECTORS(a* b + c, _mm_min_pd, _mm_max_pd, _mm_sqrt_pd, RawDoubles)
#else
template <class V>
[[gnu::always_inline]] inline V root(V x) {
  for (int i = 0; i < static_cast<int>(sizeof(x) / sizeof(x[0])); ++i) x[i] = std::sqrt(x[i]);
  return x;
}
FERRITE_ON_VECTORS(a* b + c, smaller, larger, root, RawFloats)
FERRITE_ON_VECTORS(a* b + c, smaller, larger, root, RawDoubles)
#endif
#undef FERRITE_ON_VECTORS
#undef FERRITE_ROUNDING

/// Bitwise operations on the bits of a and b. On x86 they use the floating-point units: a value that moves between the
/// integer and the floating-point units arrives a cycle later.
#if defined(__AVX512F__)
#define FERRITE_BITS(operation, symbol, suffix) _mm512_##operation##_##suffix(a, b)
#elif defined(__AVX__)
#define FERRITE_BITS(operation, symbol, suffix) _mm256_##operation##_##suffix(a, b)
#elif defined(__SSE2__)
#define FERRITE_BITS(operation, symbol, suffix) _mm_##operation##_##suffix(a, b)
#else
#define FERRITE_BITS(operation, symbol, suffix) raw_from_bits(symbol)
#endif
#define FERRITE_ON_VECTORS(V, suffix)                                                                                \
  [[gnu::always_inline]] inline V and_raw(V a, V b) { return FERRITE_BITS(and, raw_bits(a) & raw_bits(b), suffix); } \
  [[gnu::always_inline]] inline V or_raw(V a, V b) { return FERRITE_BITS(or, raw_bits(a) | raw_bits(b), suffix); }   \
  /** b without the bits of a. */                                                                                    \
  [[gnu::always_inline]] inline V without_raw(V a, V b) {                                                            \
    return FERRITE_BITS(andnot, ~raw_bits(a) & raw_bits(b), suffix);                                                 \
  }
FERRITE_ON_VECTORS(RawFloats, ps)
FERRITE_ON_VECTORS(RawDoubles, pd)
#undef FERRITE_ON_VECTORS
#undef FERRITE_BITS

// ---- moving lanes ------------------------------------------------------------------------------------------

/// Returns lanes of a followed by b, 2 W lanes: lane i of the result is lane from[i] of these.
template <class V, int... from>
[[gnu::always_inline]] inline V shuffled(V a, V b, std::integer_sequence<int, from...>) {
  return __builtin_shufflevector(a, b, from...);
}
/// Exchanges blocks of d lanes: in every pair of blocks, the second of `a` changes places with the first of `b`.
template <int d, class V, int... i>
[[gnu::always_inline]] inline void exchange_blocks(V& a, V& b, std::integer_sequence<int, i...>) {
  constexpr int W = sizeof...(i);
  const V low = shuffled(a, b, std::integer_sequence<int, ((i & d) != 0 ? W + i - d : i)...>());
  b = shuffled(a, b, std::integer_sequence<int, ((i & d) != 0 ? W + i : i + d)...>());
  a = low;
}
/// Transposes a square: lane i of row k becomes lane k of row i.
template <int d, class V, std::size_t W>
[[gnu::always_inline]] inline void transpose_raw(V (&row)[W]) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < W; ++i)
    if ((i & d) == 0) exchange_blocks<d>(row[i], row[i + d], std::make_integer_sequence<int, static_cast<int>(W)>());
  if constexpr (d > 1) transpose_raw<d / 2>(row);
}
template <class V, std::size_t W>
[[gnu::always_inline]] inline void transpose_raw(V (&row)[W]) {
  transpose_raw<static_cast<int>(W / 2)>(row);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
#endif
