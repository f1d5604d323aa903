#pragma once
/// Depthwise convolutions along one axis. Packets of a line are read in place, without an image that has zeros around
/// it.
#include <algorithm>
#include <utility>

#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

template <class T, int K>
using LineTaps = RawPacket<T>[static_cast<std::size_t>(K)];

/// Loads the operands of K neighbouring taps, starting with the first tap's first lane at `from`; one load for each
/// packet and the one after it.
#ifdef __AVX512F__
template <int K, int NV>
[[gnu::always_inline]] inline void load_neighbours(
    const float* from, RawPacket<float> (&x)[static_cast<std::size_t>(NV)][static_cast<std::size_t>(K)]) {
  __m512i ends[static_cast<std::size_t>(NV + 1)];
#pragma GCC unroll 8
  for (int v = 0; v <= NV; ++v) ends[v] = _mm512_loadu_si512(from + v * 16);
  const auto shifted = [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) ((x[v][k] = _mm512_castsi512_ps(_mm512_alignr_epi32(ends[v + 1], ends[v], k))), ...);
  };
  shifted(std::make_integer_sequence<int, K>());
}
#endif

/// Computes NV packets from result t on, for which every tap reads only existing elements. A `step` of 1 or -1 is the
/// distance between neighbouring taps.
template <class T, int K, int NV, int step>
[[gnu::always_inline]] inline void inner_packets(const LineProduct<T>& p, const LineTaps<T, K>& weights,
                                                 const T* const* taps, std::int64_t t) {
  constexpr std::int64_t W = kLanes<T>;
  RawPacket<T> x[static_cast<std::size_t>(NV)][static_cast<std::size_t>(K)];
  if constexpr (step != 0) {
    load_neighbours<K, NV>(taps[step > 0 ? 0 : K - 1] + t, x);
  } else {
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v)
#pragma GCC unroll 8
      for (int k = 0; k < K; ++k) x[v][k] = load_raw(taps[k] + t + v * W);
  }
  RawPacket<T> sums[static_cast<std::size_t>(NV)];
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) sums[v] = RawPacket<T>{};
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k)
#pragma GCC unroll 8
    for (int v = 0; v < NV; ++v) sums[v] = fma_raw(weights[k], x[v][step < 0 ? K - 1 - k : k], sums[v]);
#pragma GCC unroll 8
  for (int v = 0; v < NV; ++v) {
    Packet<T> y = sums[v];
    if (p.bias) y = y + Packet<T>(*p.bias);
    y.store(p.out + t + v * W);
  }
}

/// Computes the results [t, end), at most a packet of them.
template <class T, int K>
[[gnu::noinline]] void outer_packet(const LineProduct<T>& p, const LineTaps<T, K>& weights, std::int64_t t,
                                    std::int64_t end) {
  RawPacket<T> sum = RawPacket<T>{};
  for (int k = 0; k < K; ++k) {
    const std::int64_t from = t + p.offsets[k];
    const RawPacket<T> x = LanesWithin<T>(-from, std::min(end - t, p.length - from)).load(p.x + from);
    sum = fma_raw(weights[k], x, sum);
  }
  Packet<T> y = sum;
  if (p.bias) y = y + Packet<T>(*p.bias);
  put(p.out + t, y, end - t);
}

template <class T, int K>
void multiply_line(const LineProduct<T>& p) {
  constexpr std::int64_t W = kLanes<T>;
  constexpr int NV = 4;
  LineTaps<T, K> weights;
  const T* taps[static_cast<std::size_t>(K)];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) {
    weights[k] = set_raw<T>(p.weights[k]);
    taps[k] = p.x + p.offsets[k];
  }
  const auto [low, high] = std::minmax_element(p.offsets, p.offsets + K);
  // Packets that begin in [first, last) read only existing elements.
  const std::int64_t first = -*low, last = std::min(p.count, p.length - *high) - W + 1;
  std::int64_t t = 0;
  const auto outer = [&] {
    outer_packet<T, K>(p, weights, t, std::min(t + W, p.count));
    t += W;
  };
  while (t < std::min(first, p.count)) outer();
  const auto inner = [&]<int step>(std::integral_constant<int, step>) {
    for (; t + (NV - 1) * W < last; t += NV * W) inner_packets<T, K, NV, step>(p, weights, taps, t);
    for (; t < last; t += W) inner_packets<T, K, 1, step>(p, weights, taps, t);
  };
#ifdef __AVX512F__
  if constexpr (sizeof(T) == 4) {
    if (*high - *low == K - 1 && p.offsets[0] == *low) inner(std::integral_constant<int, 1>());
    if (*high - *low == K - 1 && p.offsets[0] == *high) inner(std::integral_constant<int, -1>());
  }
#endif
  inner(std::integral_constant<int, 0>());
  while (t < p.count) outer();
}

}  // namespace ferrite::detail::FERRITE_LEVEL
