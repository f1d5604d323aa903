#pragma once
/// Depthwise convolutions of planes with square kernels: a row of the image is loaded once for all rows of taps, where
/// tiles load it for each. Every sum is the same chain as theirs.
#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/transpose.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Whether a lane is one of the first n.
template <class T>
Mask<T> first_lanes(std::int64_t n) {
  return Packet<T>(ei::plset<RawPacket<T>>(T(0))) < Packet<T>(static_cast<T>(n));
}

/// The lanes of each sum in ascending order, of as many sums at once as a packet has lanes.
template <class T, int N>
void sum_lanes(const RawPacket<T> (&sums)[static_cast<std::size_t>(N)], T (&found)[static_cast<std::size_t>(N)]) {
  constexpr int W = kLanes<T>, kWhole = (N + W - 1) / W * W;
  alignas(64) T lanes[static_cast<std::size_t>(kWhole * W)] = {}, turned[static_cast<std::size_t>(W * W)];
  for (int k = 0; k < N; ++k) Packet<T>(sums[k]).store(lanes + k * W);
  for (int k = 0; k < N; k += W) {
    if constexpr (W > 1) {
      transpose_square<T>(lanes + k * W, W, turned, W);
    } else {
      turned[0] = lanes[k];
    }
    Packet<T> total = Packet<T>::load(turned);
    for (int i = 1; i < W; ++i) total = total + Packet<T>::load(turned + i * W);
    put(found + k, total, std::min(W, N - k));
  }
}

/// K packets, one for each tap of a row.
template <class T, int K>
[[gnu::always_inline]] inline void load_taps(const T* row, const std::int64_t* columns,
                                             RawPacket<T> (&x)[static_cast<std::size_t>(K)]) {
#pragma GCC unroll 8
  for (int c = 0; c < K; ++c) x[c] = ei::ploadu<RawPacket<T>>(row + columns[c]);
}

/// At row s of the image, sums[r] is the result of row s - r, which has met its rows of taps up to r.
template <class T, int K>
void multiply_plane(const PlaneProduct<T>& p) {
  constexpr std::int64_t W = kLanes<T>;
  RawPacket<T> weights[static_cast<std::size_t>(K * K)];
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) weights[k] = ei::pset1<RawPacket<T>>(p.weights[k]);
  for (std::int64_t at = 0; at < p.width; at += W) {
    const std::int64_t n = std::min(W, p.width - at);
    const T* row = p.image + at;
    T* out = p.out + at;
    RawPacket<T> sums[static_cast<std::size_t>(K)];
#pragma GCC unroll 8
    for (int r = 0; r < K; ++r) sums[r] = ei::pset1<RawPacket<T>>(T(0));
    for (std::int64_t s = 0; s < p.height + K - 1; ++s, row += p.image_row) {
      RawPacket<T> x[static_cast<std::size_t>(K)];
      load_taps<T, K>(row, p.columns, x);
#pragma GCC unroll 8
      for (int r = K - 1; r >= 0; --r) {
        RawPacket<T> sum = r == 0 ? ei::pset1<RawPacket<T>>(T(0)) : sums[r - 1];
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c) sum = ei::pmadd(weights[r * K + c], x[c], sum);
        sums[r] = sum;
      }
      if (s < K - 1) continue;
      Packet<T> y = sums[K - 1];
      if (p.bias) y = y + Packet<T>(*p.bias);
      put(out, y, n);
      out += p.out_row;
    }
  }
}

template <class T, int K>
using PlaneSums = RawPacket<T>[static_cast<std::size_t>(K * K)];

/// Rows [first, last) of the image; with `inner` all rows of taps meet each of them.
template <class T, int K, bool inner>
[[gnu::noinline]] void sum_rows(const PlaneDots<T>& p, std::int64_t first, std::int64_t last, PlaneSums<T, K>& sums) {
  constexpr std::int64_t W = kLanes<T>;
  const std::int64_t width = p.width, height = p.height, whole = width / W * W;
  const Mask<T> tail = first_lanes<T>(width - whole);
  std::int64_t columns[static_cast<std::size_t>(K)];
  std::copy_n(p.columns, K, columns);
  PlaneSums<T, K> acc;
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) acc[k] = sums[k];
  const T* row = p.image + first * p.image_row;
  const T* g = p.g + first * width;
  for (std::int64_t s = first; s < last; ++s, row += p.image_row, g += width)
    for (std::int64_t at = 0; at < width; at += W) {
      RawPacket<T> x[static_cast<std::size_t>(K)];
      load_taps<T, K>(row + at, columns, x);
      if (at == whole) {
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c) x[c] = or_zero(tail, Packet<T>(x[c])).raw;
      }
#pragma GCC unroll 8
      for (int r = 0; r < K; ++r) {
        if (!inner && (s < r || s - r >= height)) continue;
        RawPacket<T> y = ei::ploadu<RawPacket<T>>(g + at - r * width);
        if (at == whole) y = or_zero(tail, Packet<T>(y)).raw;
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c) acc[r * K + c] = ei::pmadd(x[c], y, acc[r * K + c]);
      }
    }
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) sums[k] = acc[k];
}

template <class T, int K>
void sum_plane(const PlaneDots<T>& p) {
  PlaneSums<T, K> sums;
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) sums[k] = ei::pset1<RawPacket<T>>(T(0));
  const std::int64_t rows = p.height + K - 1, first = std::min<std::int64_t>(K - 1, rows);
  const std::int64_t last = std::max(first, p.height);
  sum_rows<T, K, false>(p, 0, first, sums);
  if (first < p.height) sum_rows<T, K, true>(p, first, p.height, sums);
  sum_rows<T, K, false>(p, last, rows, sums);
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) sums[k] = ei::padd(ei::pset1<RawPacket<T>>(T(0)), sums[k]);
  T found[static_cast<std::size_t>(K * K)];
  sum_lanes<T, K * K>(sums, found);
  for (int k = 0; k < K * K; ++k) p.totals[k] = p.totals[k] + found[k];
}

}  // namespace ferrite::detail::FERRITE_LEVEL
