#pragma once
/// The adjoint of a depthwise convolution of planes with stride 2: neighbouring results meet different taps, and are
/// computed as two packets of every second column, which are stored in turn. Every sum is the same chain as that of a
/// tile.
#include <algorithm>

#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Two packets of columns of the results, from column `at` on, and what tap c of a row reads for every second of them:
/// for the even ones where c + before is even, else for the odd ones.
template <class T, int K>
struct SpreadColumns {
  SpreadColumns(const PlaneSpread<T>& p, std::int64_t first)
      : at(first), low(0, p.width - first), high(0, p.width - first - kLanes<T>) {
    for (int c = 0; c < K; ++c) {
      from[c] = at / 2 + (((c ^ p.columns_before) & 1) + p.columns_before - c) / 2;
      taps[c] = {-from[c], p.y_width - from[c]};
    }
  }
  std::int64_t at;
  LanesWithin<T> low, high;
  std::int64_t from[static_cast<std::size_t>(K)];
  LanesWithin<T> taps[static_cast<std::size_t>(K)];
};

/// With `odd` the columns before the first are an odd number.
template <class T, int K, int odd>
[[gnu::noinline]] void spread_plane(const PlaneSpread<T>& p, const SpreadColumns<T, K>& columns, std::int64_t plane) {
  constexpr int kRows = (K + 1) / 2;  // of y, which a row of results meets at most
  const T* const y = p.y + plane * p.y_step;
  T* const out = p.out + plane * p.out_step + columns.at;
  RawPacket<T> weights[static_cast<std::size_t>(K * K)];
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) weights[k] = set_raw<T>(p.weights[plane * K * K + k]);
  const RawPacket<T> bias = set_raw<T>(p.bias ? p.bias[plane] : T(-0.0));  // -0 changes no number
  // x[k] is row v - k of y, which rows 2 v + r - rows_before of the results meet under row of taps r.
  RawPacket<T> x[static_cast<std::size_t>(kRows)][static_cast<std::size_t>(K)];
#pragma GCC unroll 8
  for (int k = 0; k < kRows; ++k)
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c) x[k][c] = RawPacket<T>{};
  const std::int64_t first = p.rows_before >> 1, last = (p.height - 1 + p.rows_before) >> 1;
  for (std::int64_t v = first - kRows + 1; v <= last; ++v) {
#pragma GCC unroll 8
    for (int k = kRows - 1; k > 0; --k)
#pragma GCC unroll 8
      for (int c = 0; c < K; ++c) x[k][c] = x[k - 1][c];
    const bool exists = v >= 0 && v < p.y_height;
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c)
      x[0][c] = exists ? columns.taps[c].load(y + v * p.y_width + columns.from[c]) : RawPacket<T>{};
#pragma GCC unroll 2
    for (int e = 0; e < 2; ++e) {
      const std::int64_t i = 2 * v + e - p.rows_before;
      if (v < first || i < 0 || i >= p.height) continue;
      RawPacket<T> sums[2] = {RawPacket<T>{}, RawPacket<T>{}};
#pragma GCC unroll 8
      for (int r = e; r < K; r += 2)
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c)
          sums[(c ^ odd) & 1] = fma_raw(weights[r * K + c], x[(r - e) / 2][c], sums[(c ^ odd) & 1]);
      RawPacket<T> low, high;
      in_turn<T>(sums[0] + bias, sums[1] + bias, low, high);
      columns.low.store(out + i * p.width, low);
      columns.high.store(out + i * p.width + kLanes<T>, high);
    }
  }
}

template <class T, int K>
void spread_planes(const PlaneSpread<T>& p) {
  for (std::int64_t at = 0; at < p.width; at += 2 * kLanes<T>) {
    const SpreadColumns<T, K> columns(p, at);
    for (std::int64_t plane = 0; plane < p.planes; ++plane)
      p.columns_before % 2 != 0 ? spread_plane<T, K, 1>(p, columns, plane) : spread_plane<T, K, 0>(p, columns, plane);
  }
}

}  // namespace ferrite::detail::FERRITE_LEVEL
