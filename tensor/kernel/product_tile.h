#pragma once
/// The innermost loops of the general product: some rows of A against some columns of B for one block of k. Every
/// element is one ascending chain (docs/numerics.md, rule 2), whichever of them computes it.
#include <algorithm>
#include <cstdint>

#include "ferrite/tensor/kernel/matrix.h"
#include "ferrite/tensor/kernel/tile.h"
#include "ferrite/tensor/kernel/transpose.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Where the sums of a tile go. With `add` they are added to what stands there.
template <class T>
struct Target {
  T* c;
  std::int64_t step;   ///< from row to row
  std::int64_t width;  ///< columns that exist of those of the tile; more than those of all its packets but the last
  bool add;
};

/// Sums of MR rows and NV packets of columns.
template <class T, int MR, int NV>
using Sums = RawPacket<T>[static_cast<std::size_t>(MR)][static_cast<std::size_t>(NV)];

template <class T, int MR, int NV>
[[gnu::always_inline]] inline void clear(Sums<T, MR, NV>& sums) {
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) sums[m][v] = RawPacket<T>{};
}

/// So many rows are reached from one pointer, the others from a second one: with more, addresses leave the registers.
template <int MR>
inline constexpr int kUpper = MR > 4 ? MR / 2 : MR;

/// sums[m][v] += x[m] * columns[v], x[m] at x + m * step, `below` at x + kUpper<MR> * step.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void add_term(const T* x, const T* below, std::int64_t step,
                                            const RawPacket<T> (&columns)[static_cast<std::size_t>(NV)],
                                            Sums<T, MR, NV>& sums) {
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m) {
    const RawPacket<T> row = set_raw<T>(m < kUpper<MR> ? x[m * step] : below[(m - kUpper<MR>)*step]);
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) sums[m][v] = fma_raw(row, columns[v], sums[m][v]);
  }
}

template <class T, int MR, int NV, bool kAdd>
[[gnu::always_inline]] inline void store_tile(const Sums<T, MR, NV>& sums, T* c, const Target<T>& to) {
  constexpr int W = kLanes<T>;
  const std::int64_t last = to.width - (NV - 1) * W;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m, c += to.step) {
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) {
      const Packet<T> sum = sums[m][v];
      const Packet<T> y = kAdd ? Packet<T>::load(c + v * W) + sum : sum;
      if (v + 1 < NV) {
        y.store(c + v * W);
      } else {
        put(c + v * W, y, last);
      }
    }
  }
}
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void store_tile(const Sums<T, MR, NV>& sums, T* c, const Target<T>& to) {
  if (to.add) {
    store_tile<T, MR, NV, true>(sums, c, to);
  } else {
    store_tile<T, MR, NV, false>(sums, c, to);
  }
}

/// Asks for the lines of C that a tile will add to, long before it does.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void prefetch_target(const T* c, const Target<T>& to) {
  constexpr int kLine = 64 / sizeof(T);
#pragma GCC unroll 1
  for (int m = 0; m < MR; ++m, c += to.step)
#pragma GCC unroll 16
    for (int j = 0; j < NV * kLanes<T>; j += kLine) __builtin_prefetch(c + j, 1);
}

/// Packets of columns of the largest tile.
inline constexpr int kPackets = 3;

/// How a tile finds the columns of B.
enum class Columns : std::uint8_t {
  packed,    ///< in a panel in the first cache or on the way there
  in_place,  ///< rows apart, further than the processor foresees
  copied,    ///< the same, and it leaves a packed panel of them
};

/// K rows of B, `step` apart, NV packets of each; `copy`: where a packed panel arises, of copy_step columns.
template <class T>
struct Panel {
  const T* data;
  std::int64_t step;
  T* copy = nullptr;
  std::int64_t copy_step = 0;
};

/// `tiles` times MR rows of A, `row` apart, under one panel.
template <class T, int MR, int NV, Columns kColumns>
[[gnu::noinline]] void panel_tiles(const T* a, std::int64_t row, const Panel<T>& panel, std::int64_t K,
                                   const Target<T>& to, std::int64_t tiles) {
  constexpr int W = kLanes<T>, kLine = 64 / sizeof(T), kAhead = 8;
  T* c = to.c;
  for (; tiles > 0; --tiles, a += MR * row, c += MR * to.step) {
    if (to.add) prefetch_target<T, MR, NV>(c, to);
    Sums<T, MR, NV> sums;
    clear<T, MR, NV>(sums);
    const std::int64_t step = kColumns == Columns::packed ? NV * W : panel.step;
    const T* x = a;
    const T* below = a + kUpper<MR> * row;
    const T* b = panel.data;
    T* copy = panel.copy;
#pragma GCC unroll 1
    for (const T* const end = a + K; x != end; ++x, ++below, b += step) {
      RawPacket<T> columns[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) columns[v] = load_raw(b + v * W);
      if constexpr (kColumns != Columns::packed && NV <= kPackets) {
#pragma GCC unroll 16
        for (int j = 0; j < NV * W; j += kLine) __builtin_prefetch(b + kAhead * step + j);
      }
      if constexpr (kColumns == Columns::copied) {
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) store_raw(copy + v * W, columns[v]);
        copy += NV * W;
      }
      add_term<T, MR, NV>(x, below, row, columns, sums);
    }
    store_tile<T, MR, NV>(sums, c, to);
  }
}

/// Packets of columns that are transposed at once for so many rows: what the registers hold beside the sums.
constexpr int transposed_packets(int rows) { return rows <= (kManyRegisters ? 4 : 2) ? 2 : 1; }

/// MR rows under NV packets of columns of a B that lies by columns, each `step` from the next: transposed in registers.
/// Whole packets of columns are read, and up to 64 bytes past the end of each.
template <class T, int MR, int NV, bool kCopied>
[[gnu::noinline]] void transposed_tile(const T* a, std::int64_t row, const Panel<T>& panel, std::int64_t K,
                                       const Target<T>& to) {
  constexpr int W = kLanes<T>, D = Slab<T>::depth;
  constexpr int kLine = std::max<int>(D, 64 / sizeof(T));
  using P = RawPacket<T>;
  if (to.add) prefetch_target<T, MR, NV>(to.c, to);
  Sums<T, MR, NV> sums;
  clear<T, MR, NV>(sums);
  const T* b = panel.data;
  const T* below = a + kUpper<MR> * row;
  T* copy = panel.copy;
  using Slabs = P[static_cast<std::size_t>(NV)][static_cast<std::size_t>(D)];
  const auto load = [&](const T* from, Slabs& slabs) __attribute__((always_inline)) {
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v) Slab<T>::load(from + v * W * panel.step, panel.step, slabs[v]);
  };
  const auto add = [&](std::int64_t k, const P(&columns)[static_cast<std::size_t>(NV)]) __attribute__((always_inline)) {
    if constexpr (kCopied) {
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) store_raw(copy + v * W, columns[v]);
      copy += panel.copy_step;
    }
    add_term<T, MR, NV>(a + k, below + k, row, columns, sums);
  };
  std::int64_t k = 0;
  for (; k + kLine <= K; k += kLine) {
#pragma GCC unroll 4
    for (int line = 0; line < kLine; line += D) {
      Slabs slabs;
      load(b + k + line, slabs);
#pragma GCC unroll 16
      for (int d = 0; d < D; ++d) {
        P columns[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) columns[v] = slabs[v][d];
        add(k + line + d, columns);
      }
    }
  }
  for (; k < K; k += D) {
    Slabs rest;
    load(b + k, rest);
    const std::int64_t terms = std::min<std::int64_t>(D, K - k);
    for (std::int64_t d = 0; d < terms; ++d) {
      P columns[static_cast<std::size_t>(NV)];
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) columns[v] = rest[v][d];
      add(k + d, columns);
    }
  }
  store_tile<T, MR, NV>(sums, to.c, to);
}

/// MR rows of sums over KU rows of a row-major B, of V packets of columns, `step` apart: added to what stands there,
/// or stored.
template <class T, int MR, int KU, int V>
[[gnu::always_inline]] inline void stream_columns(
    const RawPacket<T> (&x)[static_cast<std::size_t>(KU)][static_cast<std::size_t>(MR)], const T* b,
    std::int64_t b_step, bool first, T* sums, std::int64_t step) {
  constexpr int W = kLanes<T>;
  Sums<T, MR, V> sum;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) sum[m][v] = first ? RawPacket<T>{} : load_raw(sums + m * step + v * W);
#pragma GCC unroll 16
  for (int k = 0; k < KU; ++k, b += b_step)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) {
      const RawPacket<T> columns = load_raw(b + v * W);
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) sum[m][v] = fma_raw(x[k][m], columns, sum[m][v]);
    }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int v = 0; v < V; ++v) store_raw(sums + m * step + v * W, sum[m][v]);
}

/// The same of so many columns, in whole packets. Long runs of each row of B at a time, which is what the memory
/// foresees.
template <class T, int MR, int KU, int V>
[[gnu::noinline]] void stream_tile(MatrixView<T> a, const T* b, std::int64_t b_step, std::int64_t columns, bool first,
                                   T* sums, std::int64_t step) {
  constexpr int W = kLanes<T>;
  RawPacket<T> x[static_cast<std::size_t>(KU)][static_cast<std::size_t>(MR)];
#pragma GCC unroll 16
  for (int k = 0; k < KU; ++k)
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) x[k][m] = set_raw<T>(a.data[m * a.row + k * a.col]);
  std::int64_t j = 0;
  for (; j + V * W <= columns; j += V * W) stream_columns<T, MR, KU, V>(x, b + j, b_step, first, sums + j, step);
  if constexpr (V > 8)
    for (; j + 8 * W <= columns; j += 8 * W) stream_columns<T, MR, KU, 8>(x, b + j, b_step, first, sums + j, step);
  if constexpr (V > 2)
    for (; j + 2 * W <= columns; j += 2 * W) stream_columns<T, MR, KU, 2>(x, b + j, b_step, first, sums + j, step);
  for (; j < columns; j += W) stream_columns<T, MR, KU, 1>(x, b + j, b_step, first, sums + j, step);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
