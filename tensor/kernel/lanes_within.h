#pragma once
/// Packets of which only some lanes may be read, and packets of every second element.
#include <algorithm>
#include <cstdint>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The lanes [begin, end) of packets: loads read only these and give zeros in the others, stores write only these.
template <class T>
class LanesWithin {
 public:
  LanesWithin() : LanesWithin(0, 0) {}
  LanesWithin(std::int64_t begin, std::int64_t end) {
    begin = std::clamp<std::int64_t>(begin, 0, W);
    end = std::clamp(end, begin, W);
#ifdef __AVX512F__
    mask_ = static_cast<LaneMask<T>>((1U << end) - (1U << begin));
#elif defined(__AVX2__)
    // Words of -1 between words of 0: a load from one word puts -1 in lane i if begin <= i, from another one if i <
    // end.
    alignas(32) static constexpr std::int32_t words[24] = {0,  0,  0,  0,  0, 0, 0, 0, -1, -1, -1, -1,
                                                           -1, -1, -1, -1, 0, 0, 0, 0, 0,  0,  0,  0};
    constexpr std::int64_t kWords = sizeof(T) / 4;
    const auto at = [](std::int64_t word) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + word));
    };
    mask_ = _mm256_and_si256(at(8 - kWords * begin), at(16 - kWords * end));
#else
    begin_ = begin;
    end_ = end;
#endif
  }

  [[gnu::always_inline]] RawPacket<T> load(const T* from) const {
#if defined(__AVX512F__) || defined(__AVX2__)
    return load_raw(from, mask_);
#else
    alignas(64) T x[static_cast<std::size_t>(W)] = {};
    for (std::int64_t i = begin_; i < end_; ++i) x[i] = from[i];
    return load_raw(x);
#endif
  }
  [[gnu::always_inline]] void store(T* to, Packet<T> v) const {
#if defined(__AVX512F__) || defined(__AVX2__)
    store_raw(to, v.raw, mask_);
#else
    alignas(64) T x[static_cast<std::size_t>(W)];
    v.store(x);
    for (std::int64_t i = begin_; i < end_; ++i) to[i] = x[i];
#endif
  }

  /// Returns v with zeros in the other lanes.
  [[gnu::always_inline]] RawPacket<T> only(RawPacket<T> v) const {
#ifdef __AVX512F__
    if constexpr (sizeof(T) == 4) {
      return _mm512_maskz_mov_ps(mask_, v);
    } else {
      return _mm512_maskz_mov_pd(mask_, v);
    }
#elif defined(__AVX2__)
    return std::bit_cast<RawPacket<T>>(_mm256_and_si256(std::bit_cast<__m256i>(v), mask_));
#else
    alignas(64) T x[static_cast<std::size_t>(W)];
    Packet<T>(v).store(x);
    for (std::int64_t i = 0; i < W; ++i) x[i] = i < begin_ || i >= end_ ? T(0) : x[i];
    return load_raw(x);
#endif
  }

 private:
  static constexpr std::int64_t W = kLanes<T>;
#if defined(__AVX512F__) || defined(__AVX2__)
  LaneMask<T> mask_;
#else
  std::int64_t begin_, end_;
#endif
};

/// Returns lanes 0, 2, 4, ... of two packets, first those of a, then those of b.
template <class T>
[[gnu::always_inline]] inline RawPacket<T> every_second(RawPacket<T> a, RawPacket<T> b) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) {
    const __m512i lanes = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    return _mm512_permutex2var_ps(a, lanes, b);
  } else {
    return _mm512_permutex2var_pd(a, _mm512_set_epi64(14, 12, 10, 8, 6, 4, 2, 0), b);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    const __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, 0xD8));
  } else {
    return _mm256_permute4x64_pd(_mm256_unpacklo_pd(a, b), 0xD8);
  }
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    return _mm_shuffle_ps(a, b, 0x88);
  } else {
    return _mm_unpacklo_pd(a, b);
  }
#else
  return []<int... i>(RawPacket<T> x, RawPacket<T> y, std::integer_sequence<int, i...>) {
    return shuffled(x, y, std::integer_sequence<int, 2 * i...>());
  }
  (a, b, std::make_integer_sequence<int, kLanes<T>>());
#endif
}

/// Returns lanes 1, 3, 5, ... of two packets of at least two lanes, first those of a, then those of b.
template <class T>
[[gnu::always_inline]] inline RawPacket<T> every_other(RawPacket<T> a, RawPacket<T> b) {
  return []<int... i>(RawPacket<T> x, RawPacket<T> y, std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    return shuffled(x, y, std::integer_sequence<int, 2 * i + 1 ...>());
  }
  (a, b, std::make_integer_sequence<int, kLanes<T>>());
}

/// Returns the lanes of a from lane k on, followed by the first k lanes of b.
template <class T, int k>
[[gnu::always_inline]] inline RawPacket<T> lanes_from(RawPacket<T> a, RawPacket<T> b) {
  if constexpr (k == 0) {
    return a;
#ifdef __AVX512F__
  } else if constexpr (sizeof(T) == 4) {
    return _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(b), _mm512_castps_si512(a), k));
#endif
  } else {
    return []<int... i>(RawPacket<T> x, RawPacket<T> y, std::integer_sequence<int, i...>)
        __attribute__((always_inline)) {
      return shuffled(x, y, std::integer_sequence<int, i + k...>());
    }
    (a, b, std::make_integer_sequence<int, kLanes<T>>());
  }
}

/// Interleaves the lanes of a and b, a0 b0 a1 b1 ..., in two packets.
template <class T>
[[gnu::always_inline]] inline void in_turn(RawPacket<T> a, RawPacket<T> b, RawPacket<T>& low, RawPacket<T>& high) {
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) {
    const __m512i lanes = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    low = _mm512_permutex2var_ps(a, lanes, b);
    high = _mm512_permutex2var_ps(a, _mm512_add_epi32(lanes, _mm512_set1_epi32(8)), b);
  } else {
    const __m512i lanes = _mm512_set_epi64(11, 3, 10, 2, 9, 1, 8, 0);
    low = _mm512_permutex2var_pd(a, lanes, b);
    high = _mm512_permutex2var_pd(a, _mm512_add_epi64(lanes, _mm512_set1_epi64(4)), b);
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(T) == 4) {
    const __m256 even = _mm256_unpacklo_ps(a, b), odd = _mm256_unpackhi_ps(a, b);
    low = _mm256_permute2f128_ps(even, odd, 0x20);
    high = _mm256_permute2f128_ps(even, odd, 0x31);
  } else {
    const __m256d even = _mm256_unpacklo_pd(a, b), odd = _mm256_unpackhi_pd(a, b);
    low = _mm256_permute2f128_pd(even, odd, 0x20);
    high = _mm256_permute2f128_pd(even, odd, 0x31);
  }
#elif defined(__SSE2__)
  if constexpr (sizeof(T) == 4) {
    low = _mm_unpacklo_ps(a, b);
    high = _mm_unpackhi_ps(a, b);
  } else {
    low = _mm_unpacklo_pd(a, b);
    high = _mm_unpackhi_pd(a, b);
  }
#else
  constexpr int W = kLanes<T>;
  [&]<int... i>(std::integer_sequence<int, i...>) {
    low = shuffled(a, b, std::integer_sequence<int, (i / 2 + i % 2 * W)...>());
    high = shuffled(a, b, std::integer_sequence<int, (W / 2 + i / 2 + i % 2 * W)...>());
  }
  (std::make_integer_sequence<int, W>());
#endif
}

}  // namespace ferrite::detail::FERRITE_LEVEL
