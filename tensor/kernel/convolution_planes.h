#pragma once
/// Depthwise convolutions of planes with square kernels. Planes are read in place: several rows of results at a time
/// share what they load. Every sum is the same chain as that of a tile.
#include <utility>

#include "ferrite/tensor/kernel/convolution.h"
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/tile.h"
#include "ferrite/tensor/kernel/transpose.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Returns a mask of the first n lanes.
template <class T>
Mask<T> first_lanes(std::int64_t n) {
  return Packet<T>(__builtin_convertvector(lane_numbers<T>(), RawPacket<T>)) < Packet<T>(static_cast<T>(n));
}

/// Sums lanes: found[k] = the sum of the kReductionLanes lanes of sum k of `sums` in ascending order. n sums count;
/// both arrays have room for n rounded up to the number of lanes of a packet.
template <class T>
void sum_lanes(const T* sums, std::int64_t n, T* found) {
  constexpr int W = kLanes<T>;
  constexpr std::int64_t L = kReductionLanes<T>;
  alignas(64) T turned[static_cast<std::size_t>(W * W)];
  for (std::int64_t k = 0; k < n; k += W) {
    Packet<T> total;
    for (std::int64_t part = 0; part < L; part += W) {
      if constexpr (W > 1) {
        transpose_square<T>(sums + k * L + part, L, turned, W);
      } else {
        turned[0] = sums[k * L + part];
      }
      total = part == 0 ? Packet<T>::load(turned) : total + Packet<T>::load(turned);
      for (int i = 1; i < W; ++i) total = total + Packet<T>::load(turned + i * W);
    }
    total.store(found + k);
  }
}

template <class T, int N>
using Packets = RawPacket<T>[static_cast<std::size_t>(N)];

/// One packet of columns of results: the lanes of it that exist, and the elements that the K taps of a row read, S
/// columns of the source apart.
template <class T, int K, int S>
struct PlaneColumns;

template <class T, int K>
struct PlaneColumns<T, K, 1> {
  PlaneColumns() = default;
  PlaneColumns(const PlaneSource<T>& source, std::int64_t begin, std::int64_t width)
      : at(begin), lanes(0, width - begin) {
    const std::int64_t n = std::min<std::int64_t>(kLanes<T>, width - at);
    for (int c = 0; c < K; ++c) {
      from[c] = at + source.columns[c];
      taps[c] = {-from[c], std::min(n, source.width - from[c])};
    }
  }
  /// Loads the elements of a row that the taps read.
  [[gnu::always_inline]] void load(const T* row, Packets<T, K>& x) const {
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c) x[c] = taps[c].load(row + from[c]);
  }

  std::int64_t at = 0;
  LanesWithin<T> lanes;
  std::int64_t from[static_cast<std::size_t>(K)];
  LanesWithin<T> taps[static_cast<std::size_t>(K)];
};

/// The columns of neighbouring taps with stride 2: tap c reads the even or the odd lanes of consecutive packets that
/// begin at tap 0.
template <class T, int K>
struct PlaneColumns<T, K, 2> {
  PlaneColumns() = default;
  PlaneColumns(const PlaneSource<T>& source, std::int64_t begin, std::int64_t width)
      : at(begin), lanes(0, width - begin), from(2 * begin + source.columns[0]) {
    const std::int64_t n = 2 * std::min<std::int64_t>(W, width - at) + K - 2;  // columns from the first to the last
    for (int i = 0; i < kParts; ++i) parts[i] = {-from - i * W, std::min(n, source.width - from) - i * W};
  }
  [[gnu::always_inline]] void load(const T* row, Packets<T, K>& x) const {
    row += from;
    const RawPacket<T> a = parts[0].load(row), b = parts[1].load(row + W), c = parts[2].load(row + 2 * W);
    const RawPacket<T> d = kParts == 4 ? parts[kParts - 1].load(row + 3 * W) : c;
    const RawPacket<T> part[2] = {every_second<T>(a, b), every_other<T>(a, b)};
    const RawPacket<T> more[2] = {K == 3 ? c : every_second<T>(c, d), every_other<T>(c, d)};
    const auto tap = [&]<int k>(std::integral_constant<int, k>) __attribute__((always_inline)) {
      const RawPacket<T> read = lanes_from<T, k / 2>(part[k % 2], more[k % 2]);
      x[k] = k <= K - 3 ? lanes.only(read) : read;  // other lanes count for nothing and are 0 already
    };
    [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
      (tap(std::integral_constant<int, k>()), ...);
    }
    (std::make_integer_sequence<int, K>());
  }

  static constexpr std::int64_t W = kLanes<T>;
  static constexpr int kParts = 2 * W + K - 2 > 3 * W ? 4 : 3;
  std::int64_t at = 0;
  LanesWithin<T> lanes;
  std::int64_t from = 0;
  LanesWithin<T> parts[static_cast<std::size_t>(kParts)];
};

/// Loads the elements that the taps of a row read at `row`; zeros where the row does not exist.
template <class T, int K, int S>
[[gnu::always_inline]] inline void load_taps(const PlaneColumns<T, K, S>& columns, const T* row, bool exists,
                                             Packets<T, K>& x) {
  if (exists) {
    columns.load(row, x);
  } else {
#pragma GCC unroll 8
    for (int c = 0; c < K; ++c) x[c] = RawPacket<T>{};
  }
}

/// The K rows of a source that a row of results meets, in one packet of columns. It moves down by S rows; each row is
/// loaded once.
template <class T, int K, int S>
class RowWindow {
 public:
  [[gnu::always_inline]] RowWindow(const PlaneSource<T>& source, const PlaneColumns<T, K, S>& columns)
      : source_(source), columns_(columns), row_(source.x - source.first * source.row) {
#pragma GCC unroll 8
    for (int r = S; r < K; ++r) load(x[r]);
  }
  [[gnu::always_inline]] void next() {
#pragma GCC unroll 8
    for (int r = 0; r < K - S; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < K; ++c) x[r][c] = x[r + S][c];
#pragma GCC unroll 8
    for (int r = K - S; r < K; ++r) load(x[r]);
  }
  Packets<T, K> x[static_cast<std::size_t>(K)];

 private:
  [[gnu::always_inline]] void load(Packets<T, K>& to) {
    load_taps<T, K, S>(columns_, row_, i_ >= source_.first && i_ < source_.last, to);
    row_ += source_.row;
    ++i_;
  }
  const PlaneSource<T> source_;
  const PlaneColumns<T, K, S> columns_;
  const T* row_;
  std::int64_t i_ = 0;
};
/// Whether there are registers for a window in addition to as many weights or sums.
template <int K>
inline constexpr bool kHasWindow = kManyRegisters&& K == 3;

/// Computes rows [j, j + RB) of the results of one packet of columns. With `inside` the source has all rows that they
/// meet.
template <class T, int K, int S, int RB, bool inside>
[[gnu::always_inline]] inline void plane_rows(const PlaneSource<T>& source, const PlaneColumns<T, K, S>& columns,
                                              const Packets<T, K * K>& weights, RawPacket<T> bias, std::int64_t j,
                                              T* out, std::int64_t out_row) {
  Packets<T, RB> sums;
#pragma GCC unroll 8
  for (int r = 0; r < RB; ++r) sums[r] = RawPacket<T>{};
  const T* row = source.x + (S * j - source.first) * source.row;
#pragma GCC unroll 16
  for (int i = 0; i < S * (RB - 1) + K; ++i, row += source.row) {
    Packets<T, K> x;
    load_taps<T, K, S>(columns, row, inside || (S * j + i >= source.first && S * j + i < source.last), x);
#pragma GCC unroll 8
    for (int r = 0; r < RB; ++r) {
      if (i < S * r || i - S * r >= K) continue;
#pragma GCC unroll 8
      for (int c = 0; c < K; ++c) sums[r] = fma_raw(weights[(i - S * r) * K + c], x[c], sums[r]);
    }
  }
  out += j * out_row + columns.at;
#pragma GCC unroll 8
  for (int r = 0; r < RB; ++r, out += out_row) columns.lanes.store(out, sums[r] + bias);
}

template <class T, int K, int S>
[[gnu::noinline]] void multiply_plane(const PlaneProduct<T>& p, const PlaneColumns<T, K, S>& columns,
                                      std::int64_t plane) {
  constexpr int kRows = 4;  // chains that run in parallel
  PlaneSource<T> source = p.source;
  source.x += plane * p.x_step;
  Packets<T, K * K> weights;
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) weights[k] = set_raw<T>(p.weights[plane * K * K + k]);
  const RawPacket<T> bias = set_raw<T>(p.bias ? p.bias[plane] : T(-0.0));  // -0 changes no number
  T* const out = p.out + plane * p.out_step;
  const std::int64_t height = p.height, out_row = p.out_row;
  if constexpr (kHasWindow<K>) {
    RowWindow<T, K, S> window(source, columns);
    T* to = out + columns.at;
    for (std::int64_t i = 0; i < height; ++i, to += out_row) {
      window.next();
      RawPacket<T> sum = RawPacket<T>{};
#pragma GCC unroll 8
      for (int r = 0; r < K; ++r)
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c) sum = fma_raw(weights[r * K + c], window.x[r][c], sum);
      columns.lanes.store(to, sum + bias);
    }
    return;
  }
  std::int64_t j = 0;
  for (; j + kRows <= height; j += kRows) {
    if (S * j >= source.first && S * (j + kRows - 1) + K <= source.last) {
      plane_rows<T, K, S, kRows, true>(source, columns, weights, bias, j, out, out_row);
    } else {
      plane_rows<T, K, S, kRows, false>(source, columns, weights, bias, j, out, out_row);
    }
  }
  for (; j + 2 <= height; j += 2) plane_rows<T, K, S, 2, false>(source, columns, weights, bias, j, out, out_row);
  if (j < height) plane_rows<T, K, S, 1, false>(source, columns, weights, bias, j, out, out_row);
}

template <class T, int K, int S>
void multiply_planes(const PlaneProduct<T>& p) {
  for (std::int64_t at = 0; at < p.width; at += kLanes<T>) {
    const PlaneColumns<T, K, S> columns(p.source, at, p.width);
    for (std::int64_t plane = 0; plane < p.planes; ++plane) multiply_plane<T, K, S>(p, columns, plane);
  }
}

/// Sums the rows [j, end) of g, `packets` packets each, of a plane. With `inside` all rows of the source exist.
template <class T, int K, int S, bool inside>
[[gnu::always_inline]] inline void sum_rows(const PlaneSource<T>& source, const PlaneColumns<T, K, S>* columns,
                                            std::int64_t packets, std::int64_t j, std::int64_t end, const T* g,
                                            std::int64_t width, Packets<T, K * K>& sums) {
  const T* row = source.x + (S * j - source.first) * source.row;
  g += j * width;
  for (; j < end; ++j, row += S * source.row, g += width)
    for (std::int64_t at = 0; at < packets; ++at) {
      const PlaneColumns<T, K, S>& these = columns[at];
      const RawPacket<T> y = these.lanes.load(g + these.at);
      const T* from = row;
#pragma GCC unroll 8
      for (int r = 0; r < K; ++r, from += source.row) {
        Packets<T, K> x;
        load_taps<T, K, S>(these, from, inside || (S * j + r >= source.first && S * j + r < source.last), x);
#pragma GCC unroll 8
        for (int c = 0; c < K; ++c) sums[r * K + c] = fma_raw(x[c], y, sums[r * K + c]);
      }
    }
}

/// Sums all rows of g where they have NP packets, whose windows fit in registers.
template <class T, int K, int S, int NP>
[[gnu::always_inline]] inline void sum_narrow_rows(const PlaneSource<T>& source, const PlaneColumns<T, K, S>* columns,
                                                   std::int64_t height, const T* g, std::int64_t width,
                                                   Packets<T, K * K>& sums) {
  const auto add = [&](RowWindow<T, K, S> & window, const T* from, const PlaneColumns<T, K, S>& these)
      __attribute__((always_inline)) {
    window.next();
    const RawPacket<T> y = these.lanes.load(from + these.at);
#pragma GCC unroll 8
    for (int r = 0; r < K; ++r)
#pragma GCC unroll 8
      for (int c = 0; c < K; ++c) sums[r * K + c] = fma_raw(window.x[r][c], y, sums[r * K + c]);
  };
  RowWindow<T, K, S> first(source, columns[0]);
  if constexpr (NP == 1) {
    for (std::int64_t j = 0; j < height; ++j, g += width) add(first, g, columns[0]);
  } else {
    RowWindow<T, K, S> second(source, columns[1]);
    for (std::int64_t j = 0; j < height; ++j, g += width) {
      add(first, g, columns[0]);
      add(second, g, columns[1]);
    }
  }
}

template <class T, int K, int S>
[[gnu::noinline]] void sum_plane(const PlaneDots<T>& p, const PlaneColumns<T, K, S>* columns, std::int64_t packets,
                                 const T* x, const T* g, T* sums) {
  PlaneSource<T> source = p.source;
  source.x = x;
  const std::int64_t height = p.height, width = p.width;
  // Rows of g whose taps all meet existing rows of the source: S * j >= first, S * j + K <= last.
  const std::int64_t first = std::clamp<std::int64_t>((source.first + S - 1) / S, 0, height);
  const std::int64_t last =
      source.last < K ? first : std::clamp<std::int64_t>((source.last - K) / S + 1, first, height);
  Packets<T, K * K> acc;
#pragma GCC unroll 32
  for (int k = 0; k < K * K; ++k) acc[k] = RawPacket<T>{};
  if (kHasWindow<K> && packets == 1) {
    sum_narrow_rows<T, K, S, 1>(source, columns, height, g, width, acc);
  } else if (kHasWindow<K> && packets == 2) {
    sum_narrow_rows<T, K, S, 2>(source, columns, height, g, width, acc);
  } else {
    sum_rows<T, K, S, false>(source, columns, packets, 0, first, g, width, acc);
    sum_rows<T, K, S, true>(source, columns, packets, first, last, g, width, acc);
    sum_rows<T, K, S, false>(source, columns, packets, last, height, g, width, acc);
  }
#pragma GCC unroll 32
  for (std::int64_t k = 0; k < K * K; ++k) {
    T* const lanes = sums + k * kReductionLanes<T>;
    store_raw(lanes, load_raw(lanes) + acc[k]);
  }
}

template <class T, int K, int S>
void sum_planes(const PlaneDots<T>& p) {
  constexpr std::int64_t W = kLanes<T>, L = kReductionLanes<T>, kSums = K * K, kParts = L / W;
  // The columns of each part of the lanes.
  PlaneColumns<T, K, S> columns[static_cast<std::size_t>(kParts)][kMostPlanePackets];
  std::int64_t packets[static_cast<std::size_t>(kParts)] = {};
  for (std::int64_t at = 0; at < p.width; at += W) {
    const std::int64_t part = at / W % kParts;
    columns[part][packets[part]++] = {p.source, at, p.width};
  }
  // The lanes of as many planes at a time as make whole squares to transpose.
  alignas(64) T sums[static_cast<std::size_t>(W * kSums * L)], found[static_cast<std::size_t>(W * kSums)];
  for (std::int64_t plane = 0; plane < p.planes; plane += W) {
    const std::int64_t n = std::min<std::int64_t>(W, p.planes - plane), whole = (n * kSums + W - 1) / W * W;
    std::fill_n(sums, whole * L, T(0));
    for (std::int64_t image = 0; image < p.images; ++image)
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t part = 0; part < kParts && packets[part] > 0; ++part)
          sum_plane<T, K, S>(p, columns[part], packets[part], p.source.x + image * p.x_image + (plane + i) * p.x_step,
                             p.g + image * p.g_image + (plane + i) * p.g_step, sums + i * kSums * L + part * W);
    sum_lanes(sums, n * kSums, found);
    std::copy_n(found, n * kSums, p.totals + plane * kSums);
  }
}

}  // namespace ferrite::detail::FERRITE_LEVEL
