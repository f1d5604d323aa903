/// The product of matrices, on one thread.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/tile.h"
#include "ferrite/tensor/kernel/transpose.h"

namespace ferrite::detail::FERRITE_LEVEL {

// ---- tiles: some rows of A by some columns of B for one block of k ----------------------------------------
// Every element is one ascending chain (docs/numerics.md, rule 2), whichever of them computes it.

/// The destination of the sums of a tile. With `add` they are added to its contents.
template <class T>
struct Target {
  T* c;
  std::int64_t step;   ///< distance from row to row
  std::int64_t width;  ///< existing columns of the tile; more than those of all its packets but the last
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

/// Number of rows reached from one pointer, the others from a second one: more addresses would not fit in registers.
template <int MR>
inline constexpr int kUpper = MR > 4 ? MR / 2 : MR;

/// Computes sums[m][v] += x[m] * columns[v], x[m] at x + m * step, `below` at x + kUpper<MR> * step.
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

/// Prefetches the lines of C that a tile will add to, long before it does.
template <class T, int MR, int NV>
[[gnu::always_inline]] inline void prefetch_target(const T* c, const Target<T>& to) {
  constexpr int kLine = 64 / sizeof(T);
#pragma GCC unroll 1
  for (int m = 0; m < MR; ++m, c += to.step)
#pragma GCC unroll 16
    for (int j = 0; j < NV * kLanes<T>; j += kLine) __builtin_prefetch(c + j, 1);
}

/// Number of packets of columns of the largest tile.
inline constexpr int kPackets = 3;

/// The way in which a tile reads the columns of B.
enum class Columns : std::uint8_t {
  packed,    ///< in a panel in the first cache or on the way there
  in_place,  ///< rows apart, further than the processor prefetches
  copied,    ///< as in_place, and the tile leaves a packed panel of them
};

/// K rows of B, `step` apart, NV packets of each; `copy` receives a packed panel of copy_step columns.
template <class T>
struct Panel {
  const T* data;
  std::int64_t step;
  T* copy = nullptr;
  std::int64_t copy_step = 0;
  /// The elements that are read next, far away: one is prefetched for each element of this panel. Null: none.
  const T* ahead = nullptr;
};

/// Multiplies `tiles` times MR rows of A, `row` apart, by one panel.
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
      if constexpr (MR == 2 && NV > 6) {  // there is no room for all columns in addition to the sums
        const RawPacket<T> rows[2] = {set_raw<T>(x[0]), set_raw<T>(x[row])};
#pragma GCC unroll 16
        for (int v = 0; v < NV; ++v) {
          RawPacket<T> column = load_raw(b + v * W);
          hold_raw(column);
          sums[0][v] = fma_raw(rows[0], column, sums[0][v]);
          sums[1][v] = fma_raw(rows[1], column, sums[1][v]);
        }
        continue;
      }
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

/// Returns the packets of columns that are transposed at once for `rows` rows, so that they and the sums fit. One
/// packet of 64 bytes is faster than two: its columns are 16 runs to read at once.
constexpr int transposed_packets(int rows) {
  return sizeof(RawFloats) < 64 && rows <= (kManyRegisters ? 4 : 2) ? 2 : 1;
}

/// Multiplies MR rows by NV packets of columns of a B that is stored by columns, each `step` from the next, transposing
/// in registers. Whole packets of columns are read, and up to 64 bytes past the end of each.
template <class T, int MR, int NV, bool kCopied>
[[gnu::noinline]] void transposed_tile(const T* a, std::int64_t row, const Panel<T>& panel, std::int64_t K,
                                       const Target<T>& to) {
  constexpr int W = kLanes<T>, D = Slab<T>::depth;
  constexpr int kLine = std::max<int>(D, 64 / sizeof(T));
  // Many registers have room for all that a line of each column holds, before others evict it from the first cache.
  constexpr bool kWholeLines = kManyRegisters && NV == 1;
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
    if (panel.ahead) {
      const T* const next = panel.ahead + k * NV * W;
#pragma GCC unroll 4
      for (int i = 0; i < NV * W; ++i) __builtin_prefetch(next + i * kLine, 0, 2);
    }
    if constexpr (kWholeLines) {
      P line[static_cast<std::size_t>(kLine / D)][static_cast<std::size_t>(D)];
#pragma GCC unroll 4
      for (int i = 0; i < kLine / D; ++i) Slab<T>::load(b + k + i * D, panel.step, line[i]);
#pragma GCC unroll 16
      for (int i = 0; i < kLine; ++i) add(k + i, {line[i / D][i % D]});
    } else {
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

/// Adds MR rows of sums over KU rows of a row-major B, V packets of columns, to those in `sums`, or stores them.
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

/// Streams MR rows by KU rows of B for all `columns`, in whole packets. Reads long runs of each row of B at a time,
/// which the memory can prefetch.
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

// ---- blocks of rows, columns and k ------------------------------------------------------------------------

namespace {

/// Rows of the largest tile: with three packets of columns it fills the registers without spilling. (f64, for checks,
/// has fewer of them, and less code.)
template <class T>
inline constexpr int kRows = kManyRegisters ? (sizeof(T) == 4 ? 8 : 6) : 4;
template <class T>
inline constexpr std::int64_t kWidth = kPackets* kLanes<T>;

/// Returns memory of this thread for packed rows or panels, n elements.
template <class T>
T* packed_memory(PackedSide side, std::int64_t n) {
  return reinterpret_cast<T*>(product_memory(side, static_cast<std::size_t>(n) * sizeof(T)));
}

/// Calls f(std::integral_constant<int, n>), n in [Least, Most].
template <int Least, int Most, class F>
[[gnu::always_inline]] inline void with_constant(int n, const F& f) {
  if constexpr (Least == Most) {
    f(std::integral_constant<int, Most>());
  } else if (n == Most) {
    f(std::integral_constant<int, Most>());
  } else {
    with_constant<Least, Most - 1>(n, f);
  }
}

/// Returns the packets of the next panel when `left` are left: avoids a panel of one packet where possible, whose
/// chains would wait for each other.
constexpr int packets_of_panel(std::int64_t left) { return left == 4 || left == 2 ? 2 : left == 1 ? 1 : kPackets; }

/// Splits M rows into groups for tiles of at most `most` rows, as equal as possible.
struct RowGroups {
  RowGroups(std::int64_t M, std::int64_t most) : count(1), rows(static_cast<int>(M)), larger(0) {
    if (M <= most) return;
    count = (M + most - 1) / most;
    rows = static_cast<int>(M / count);
    larger = M % count;
  }
  int size(std::int64_t group) const { return group < larger ? rows + 1 : rows; }
  /// Calls f(rows of a group, first row, number of such groups) for groups [g, last).
  template <class F>
  void each(std::int64_t g, std::int64_t last, const F& f) const {
    while (g < last) {
      const std::int64_t same = std::min(last, g < larger ? larger : count) - g;
      f(size(g), g * rows + std::min(g, larger), same);
      g += same;
    }
  }
  std::int64_t count;
  int rows;
  std::int64_t larger;  ///< number of groups that have one row more
};

/// Copies columns [0, width) of B [K, .] into a panel of `panel_width` columns, with zeros beyond.
template <class T>
void pack_panel(MatrixView<T> b, std::int64_t K, std::int64_t width, std::int64_t panel_width, T* to) {
  constexpr int W = kLanes<T>;
  if (b.col == 1) {
    for (std::int64_t k = 0; k < K; ++k, to += panel_width) {
      std::memcpy(to, b.data + k * b.row, static_cast<std::size_t>(width) * sizeof(T));
      std::fill(to + width, to + panel_width, T(0));
    }
    return;
  }
  std::int64_t squares = 0;
  if (b.row == 1 && W > 1 && width >= W) {
    squares = K / W * W;
    for (std::int64_t j = 0; j < width; j += W) {
      const std::int64_t at = std::min(j, width - W);  // the last square overlaps the one before
      for (std::int64_t k = 0; k < squares; k += W)
        transpose_square<T>(b.data + k + at * b.col, b.col, to + k * panel_width + at, panel_width);
    }
  }
  for (std::int64_t k = 0; k < K; ++k) {
    T* row = to + k * panel_width;
    for (std::int64_t j = k < squares ? width : 0; j < width; ++j) row[j] = b.data[k * b.row + j * b.col];
    std::fill(row + width, row + panel_width, T(0));
  }
}

/// Copies A [M, K] to contiguous rows, `step` apart; writes up to whole packets after each.
template <class T>
void pack_rows(MatrixView<T> a, std::int64_t M, std::int64_t K, T* to, std::int64_t step) {
  constexpr int W = kLanes<T>;
  const std::int64_t squares = W > 1 && a.row == 1 ? K / W * W : 0;
  for (std::int64_t m = 0; m < M; m += W) {
    const std::int64_t rows = std::min<std::int64_t>(W, M - m);
    std::int64_t k = 0;
    if (rows == W)
      for (; k < squares; k += W) transpose_square<T>(a.data + m + k * a.col, a.col, to + m * step + k, step);
    for (; k < K; ++k)
      for (std::int64_t i = m; i < m + rows; ++i) to[i * step + k] = a.data[i * a.row + k * a.col];
  }
}

/// The product with one term each: rows of C [M, N] are multiples of the one row of B, which stays in registers.
template <class T>
class OuterProduct {
 public:
  OuterProduct(std::int64_t M, std::int64_t N, const T* a, std::int64_t a_row, const T* b, T* c, std::int64_t ldc,
               bool add)
      : M_(M), N_(N), a_(a), a_row_(a_row), b_(b), c_(c), ldc_(ldc), add_(add) {}

  void run() {
    std::int64_t j = 0;
    columns<8>(j);
    columns<2>(j);
    columns<1>(j);
    if (j == N_) return;
    const Packet<T> b = Packet<T>::load(b_ + j);
    for (std::int64_t m = 0; m < M_; ++m) {
      T* const to = c_ + m * ldc_ + j;
      const Packet<T> term = fma(Packet<T>(a_[m * a_row_]), b, T(0));
      put(to, add_ ? Packet<T>::load(to) + term : term, N_ - j);
    }
  }

 private:
  template <int NV>
  void columns(std::int64_t& j) {
    constexpr int W = kLanes<T>;
    for (; j + NV * W <= N_; j += NV * W) {
      Packet<T> b[static_cast<std::size_t>(NV)];
#pragma GCC unroll 8
      for (int v = 0; v < NV; ++v) b[v] = Packet<T>::load(b_ + j + v * W);
      for (std::int64_t m = 0; m < M_; ++m) {
        const Packet<T> x = a_[m * a_row_];
        T* const to = c_ + m * ldc_ + j;
#pragma GCC unroll 8
        for (int v = 0; v < NV; ++v) {
          const Packet<T> term = fma(x, b[v], T(0));
          (add_ ? Packet<T>::load(to + v * W) + term : term).store(to + v * W);
        }
      }
    }
  }

  std::int64_t M_, N_;
  const T* a_;
  std::int64_t a_row_;
  const T* b_;
  T* c_;
  std::int64_t ldc_;
  bool add_;
};

/// The product for one block of k: C [M, N] (+)= A [M, K] . B [K, N], K at most kBlockK.
template <class T>
class BlockProduct {
 public:
  BlockProduct(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
               bool add)
      : M_(M), N_(N), K_(K), a_(a), b_(b), c_(c), ldc_(ldc), add_(add) {}

  void run() {
    if (b_.col == 1 && K_ == 1) return OuterProduct<T>(M_, N_, a_.data, a_.row, b_.data, c_, ldc_, add_).run();
    const std::int64_t bytes = N_ * K_ * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t near = M_ > 1 && M_ <= kWideRows ? kCaches : kFirstCache;  // where panels of rows are faster
    if (b_.col == 1 && M_ <= kStreamedRows && bytes > near) return streamed();
    if (a_.col == 1) return product(M_, a_.data, a_.row, c_);
    // Rows of A that are not contiguous are packed as well, in groups that stay in the second cache.
    constexpr std::int64_t kGroup = 256, kStep = kBlockK + 64 / sizeof(T);
    T* const rows = packed_memory<T>(PackedSide::rows, std::min(kGroup, M_) * kStep);
    for (std::int64_t m = 0; m < M_; m += kGroup) {
      const std::int64_t n = std::min(kGroup, M_ - m);
      pack_rows<T>({a_.data + m * a_.row, a_.row, a_.col}, n, K_, rows, kStep);
      product(n, rows, kStep, c_ + m * ldc_);
    }
  }

 private:
  static constexpr std::int64_t kFirstCache = 48 * 1024, kCaches = 4 * 1024 * 1024;  ///< bytes
  static constexpr int kStreamedRows = 2;  ///< most rows for which B is read along its rows
  /// Most rows for which twelve packets of columns fit in registers.
  static constexpr int kWideRows = kManyRegisters && sizeof(T) == 4 ? 2 : 1;
  static constexpr int W = kLanes<T>;

  /// Multiplies M rows of A, `row` apart.
  void product(std::int64_t M, const T* a, std::int64_t row, T* c) {
    // Up to this many rows, packing B costs more than it saves.
    const std::int64_t most = b_.row > 2048 ? 16 : 64;
    if (M <= most && b_.col == 1) return in_place(M, a, row, c);
    panels(M, a, row, c);
  }

  Target<T> target(T* c, std::int64_t j, std::int64_t packets) const {
    return {c + j, ldc_, std::min(packets * W, N_ - j), add_};
  }

  /// Multiplies few rows: B is read along its rows, some of them at a time, and the sums wait in the first cache.
  void streamed() {
    constexpr std::int64_t kColumns = 4096;
    T* const sums = packed_memory<T>(PackedSide::panels, kStreamedRows * kColumns);
    for (std::int64_t j = 0; j < N_; j += kColumns) {
      const std::int64_t columns = std::min(kColumns, N_ - j);
      with_constant<1, kStreamedRows>(static_cast<int>(M_), [&](auto rows) {
        constexpr int V = kManyRegisters ? (rows == 1 ? 16 : 8) : (rows == 1 ? 8 : 4);
        std::int64_t k = 0;
        const auto add_rows = [&](auto n) {
          for (; k + n <= K_; k += n)
            stream_tile<T, rows, n, V>({a_.data + k * a_.col, a_.row, a_.col}, b_.data + k * b_.row + j, b_.row,
                                       columns, k == 0, sums, kColumns);
        };
        add_rows(std::integral_constant<int, 8>());
        add_rows(std::integral_constant<int, 1>());
      });
      for (std::int64_t m = 0; m < M_; ++m) {
        T* const to = c_ + m * ldc_ + j;
        for (std::int64_t i = 0; i < columns; i += W) {
          const Packet<T> sum = Packet<T>::load(sums + m * kColumns + i);
          put(to + i, add_ ? Packet<T>::load(to + i) + sum : sum, std::min<std::int64_t>(W, columns - i));
        }
      }
    }
  }

  /// Multiplies rows for few tiles: B is read in place.
  void in_place(std::int64_t M, const T* a, std::int64_t row, T* c) {
    const RowGroups groups(M, kRows<T>);
    for (std::int64_t j = 0; j < N_;) {
      const std::int64_t left = packets_of<T>(N_ - j);
      const int wide = M <= kWideRows && left >= 12 ? 12 : M <= kRows<T> / 2 && left >= 6 ? 6 : packets_of_panel(left);
      const Panel<T> b{b_.data + j, b_.row};
      if (wide == 12) {
        with_constant<1, kWideRows>(static_cast<int>(M), [&](auto rows) {
          panel_tiles<T, rows, 12, Columns::in_place>(a, row, b, K_, target(c, j, 12), 1);
        });
      } else if (wide == 6) {
        with_constant<1, kRows<T> / 2>(static_cast<int>(M), [&](auto rows) {
          panel_tiles<T, rows, 6, Columns::in_place>(a, row, b, K_, target(c, j, 6), 1);
        });
      } else {
        with_constant<1, kPackets>(wide, [&](auto packets) {
          groups.each(0, groups.count, [&](int size, std::int64_t m, std::int64_t tiles) {
            with_constant<1, kRows<T>>(size, [&](auto rows) {
              panel_tiles<T, rows, packets, Columns::in_place>(a + m * row, row, b, K_,
                                                               target(c + m * ldc_, j, packets), tiles);
            });
          });
        });
      }
      j += wide * W;
    }
  }

  /// Multiplies any number of rows: each panel of B is packed, by its first tile where possible, for the tiles that
  /// follow. Several panels are multiplied by a group of rows that stays in the second cache.
  void panels(std::int64_t M, const T* a, std::int64_t row, T* c) {
    constexpr std::int64_t kPanels = 8, kTiles = 12;
    T* const packed = packed_memory<T>(PackedSide::panels, kPanels * kBlockK * kWidth<T>);
    const RowGroups groups(M, kRows<T>);
    for (std::int64_t j0 = 0; j0 < N_; j0 += kPanels * kWidth<T>) {
      const std::int64_t end = std::min(N_, j0 + kPanels * kWidth<T>);
      for (std::int64_t g = 0; g < groups.count; g += kTiles) {
        T* panel = packed;
        for (std::int64_t j = j0; j < end;) {
          const int packets = packets_of_panel(packets_of<T>(end - j));
          with_constant<1, kPackets>(packets, [&](auto n) {
            panel_rows<n>(groups, g, std::min(groups.count, g + kTiles), a, row, j, panel, c);
          });
          j += packets * W;
          if (groups.count > kTiles) panel += packets * W * K_;  // otherwise it is not used again
        }
      }
    }
  }

  /// Multiplies groups [g, last) of rows by the panel of NV packets at column j; the first group of all packs it.
  template <int NV>
  void panel_rows(const RowGroups& groups, std::int64_t g, std::int64_t last, const T* a, std::int64_t row,
                  std::int64_t j, T* panel, T* c) {
    if (g == 0) {
      with_constant<1, kRows<T>>(groups.size(0), [&](auto rows) {
        first_tile<rows, NV>(a, row, j, panel, groups.count > 1, target(c, j, NV));
      });
      ++g;
    }
    groups.each(g, last, [&](int size, std::int64_t m, std::int64_t tiles) {
      with_constant<std::max(1, kRows<T> / 2), kRows<T>>(size, [&](auto rows) {
        panel_tiles<T, rows, NV, Columns::packed>(a + m * row, row, {panel, NV * W}, K_, target(c + m * ldc_, j, NV),
                                                  tiles);
      });
    });
  }

  /// Computes the first tile of a panel, and leaves the panel packed for others.
  template <int MR, int NV>
  void first_tile(const T* a, std::int64_t row, std::int64_t j, T* panel, bool used_again, const Target<T>& to) {
    if constexpr (MR > kRows<T> / 2) {
      const Panel<T> b{b_.data + j, b_.row, panel};
      if (b_.col == 1 && used_again) return panel_tiles<T, MR, NV, Columns::copied>(a, row, b, K_, to, 1);
    }
    if (b_.row == 1 && to.width == NV * W) return transposed_panel<MR, NV>(a, row, j, panel, used_again, to);
    pack_panel<T>({b_.data + j * b_.col, b_.row, b_.col}, K_, to.width, NV * W, panel);
    panel_tiles<T, MR, NV, Columns::packed>(a, row, {panel, NV * W}, K_, to, 1);
  }

  template <int MR, int NV>
  void transposed_panel(const T* a, std::int64_t row, std::int64_t j, T* copy, bool used_again, Target<T> to) {
    constexpr int kAtOnce = std::min(NV, transposed_packets(MR));
    const auto tile = [&](auto packets, int v) {
      const Panel<T> b{b_.data + (j + v * W) * b_.col, b_.col, copy + v * W, NV * W};
      to.width = packets * W;
      if constexpr (MR > kRows<T> / 2) {
        if (used_again) {
          transposed_tile<T, MR, packets, true>(a, row, b, K_, to);
          to.c += to.width;
          return;
        }
      }
      transposed_tile<T, MR, packets, false>(a, row, b, K_, to);
      to.c += to.width;
    };
    int v = 0;
    for (; v + kAtOnce <= NV; v += kAtOnce) tile(std::integral_constant<int, kAtOnce>(), v);
    if constexpr (NV % kAtOnce) tile(std::integral_constant<int, NV % kAtOnce>(), v);
  }

  std::int64_t M_, N_, K_;
  MatrixView<T> a_, b_;
  T* c_;
  std::int64_t ldc_;
  bool add_;
};

/// Computes a product of a few elements without packets: the same chains with less overhead. K at most kBlockK.
template <class T>
void tiny(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
          bool add) {
  for (std::int64_t m = 0; m < M; ++m)
    for (std::int64_t n = 0; n < N; ++n) {
      T sum = 0;
      for (std::int64_t k = 0; k < K; ++k)
        sum = scalar_fma(a.data[m * a.row + k * a.col], b.data[k * b.row + n * b.col], sum);
      c[m * ldc + n] = add ? c[m * ldc + n] + sum : sum;
    }
}

/// Multiplies the contiguous rows of one tile by a B that is stored by columns, at least a packet of them: all K for
/// some columns at a time, so that B is read from its first element to its last.
template <class T, int MR>
void few_rows(std::int64_t N, std::int64_t K, const T* a, std::int64_t row, const T* b, std::int64_t b_step, T* c,
              std::int64_t ldc, bool add) {
  constexpr int W = kLanes<T>, kAtOnce = transposed_packets(MR);
  // Beyond the second cache the next columns are prefetched in order while these are read together.
  const bool far = N * K * static_cast<std::int64_t>(sizeof(T)) > 768 * 1024 && b_step == K;
  const auto columns = [&](auto packets, std::int64_t j, Target<T> to) {
    for (std::int64_t k = 0; k < K; k += kBlockK, to.add = true)
      transposed_tile<T, MR, packets, false>(
          a + k, row,
          {b + j * b_step + k, b_step, nullptr, 0, far ? b + (j + packets * W) * b_step + k * packets * W : nullptr},
          std::min(kBlockK, K - k), to);
  };
  std::int64_t j = 0;
  for (; j + kAtOnce * W <= N; j += kAtOnce * W)
    columns(std::integral_constant<int, kAtOnce>(), j, {c + j, ldc, kAtOnce * W, add});
  if constexpr (kAtOnce > 1)
    for (; j + W <= N; j += W) columns(std::integral_constant<int, 1>(), j, {c + j, ldc, W, add});
  if (j == N) return;
  alignas(64) T last[static_cast<std::size_t>(MR * W)];  // the last packet, whose first columns are done
  columns(std::integral_constant<int, 1>(), N - W, {last, W, W, false});
  for (int m = 0; m < MR; ++m)
    for (std::int64_t i = j; i < N; ++i) {
      T& to = c[m * ldc + i];
      to = add ? to + last[m * W + i - (N - W)] : last[m * W + i - (N - W)];
    }
}

/// Most packets of columns of a tall B, and blocks of k that are summed at a time.
inline constexpr int kTallPackets = 2, kTallBlocks = 4;

/// Multiplies one row by some blocks of k of a B of few columns: sums all blocks in parallel, since each is a chain
/// that waits for itself, then adds them in order. The last block has `last` terms.
template <class T, int NV, int Blocks>
[[gnu::noinline]] void tall_blocks(const T* a, const T* b, std::int64_t b_row, std::int64_t last, T* c,
                                   std::int64_t width, bool add) {
  constexpr int W = kLanes<T>;
  Sums<T, Blocks, NV> sums;
  clear<T, Blocks, NV>(sums);
  const auto terms = [&]<int N>(std::integral_constant<int, N>, std::int64_t k, std::int64_t end)
      __attribute__((always_inline)) {
    for (; k < end; ++k) {
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        const RawPacket<T> x = set_raw(a[n * kBlockK + k]);
#pragma GCC unroll 2
        for (int v = 0; v < NV; ++v)
          sums[n][v] = fma_raw(x, load_raw(b + (n * kBlockK + k) * b_row + v * W), sums[n][v]);
      }
    }
  };
  terms(std::integral_constant<int, Blocks>(), 0, last);
  if constexpr (Blocks > 1) terms(std::integral_constant<int, Blocks - 1>(), last, kBlockK);
#pragma GCC unroll 2
  for (int v = 0; v < NV; ++v) {
    Packet<T> sum = add ? Packet<T>::load(c + v * W) + Packet<T>(sums[0][v]) : Packet<T>(sums[0][v]);
#pragma GCC unroll 4
    for (int n = 1; n < Blocks; ++n) sum = sum + Packet<T>(sums[n][v]);
    put(c + v * W, sum, std::min<std::int64_t>(W, width - v * W));
  }
}

template <class T>
void tall(std::int64_t N, std::int64_t K, const T* a, const T* b, std::int64_t b_row, T* c, bool add) {
  for (std::int64_t k = 0; k < K; k += kTallBlocks * kBlockK, add = true) {
    const std::int64_t rest = std::min(K - k, kTallBlocks * kBlockK), blocks = (rest + kBlockK - 1) / kBlockK;
    with_constant<1, kTallPackets>(static_cast<int>(packets_of<T>(N)), [&](auto packets) {
      with_constant<1, kTallBlocks>(static_cast<int>(blocks), [&](auto n) {
        tall_blocks<T, packets, n>(a + k, b + k * b_row, b_row, rest - (n - 1) * kBlockK, c, N, add);
      });
    });
  }
}

}  // namespace

template <class T>
void product(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
             bool add) {
  constexpr std::int64_t kTiny = 128;  // multiply-adds
  if (K <= kBlockK && M * N * K <= kTiny) return tiny(M, N, K, a, b, c, ldc, add);
  if (N == 1 && M > 1 && ldc == 1) return product<T>(1, M, K, {b.data, 0, b.row}, {a.data, a.col, a.row}, c, M, add);
  if (b.row == 1 && b.col != 1 && a.col == 1 && M <= kRows<T> && N >= kLanes<T>)
    return with_constant<1, kRows<T>>(
        static_cast<int>(M), [&](auto rows) { few_rows<T, rows>(N, K, a.data, a.row, b.data, b.col, c, ldc, add); });
  if constexpr (std::is_same_v<T, float>)  // f64, for checks, stays small
    if (M == 1 && K > kBlockK && a.col == 1 && b.col == 1 && packets_of<T>(N) <= kTallPackets)
      return tall<T>(N, K, a.data, b.data, b.row, c, add);
  for (std::int64_t k = 0; k < K; k += kBlockK) {
    const std::int64_t n = std::min(kBlockK, K - k);
    BlockProduct<T>(M, N, n, {a.data + k * a.col, a.row, a.col}, {b.data + k * b.row, b.row, b.col}, c, ldc,
                    add || k > 0)
        .run();
  }
}
template void product(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*,
                      std::int64_t, bool);
#ifndef FERRITE_ABOVE_AVX2
template void product(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>, double*,
                      std::int64_t, bool);
#endif

// ---- a B that several products read, packed once ----------------------------------------------------------

namespace {

/// Calls f(first column of a panel, its packets as a constant) for the panels of N columns that hold the first
/// `columns`.
template <class T, class F>
void each_panel(std::int64_t N, std::int64_t columns, const F& f) {
  for (std::int64_t j = 0; j < columns;) {
    const int packets = packets_of_panel(packets_of<T>(N - j));
    with_constant<1, kPackets>(packets, [&](auto n) { f(j, n); });
    j += packets * kLanes<T>;
  }
}

template <class T>
void pack_panels(std::int64_t N, std::int64_t K, MatrixView<T> b, T* to) {
  each_panel<T>(N, N, [&](std::int64_t j, auto packets) {
    constexpr std::int64_t kColumns = packets * kLanes<T>;
    pack_panel<T>({b.data + j * b.col, b.row, b.col}, K, std::min(kColumns, N - j), kColumns, to + j * K);
  });
}

template <class T>
void product_of_panels(std::int64_t M, std::int64_t N, std::int64_t columns, std::int64_t K, const T* a,
                       std::int64_t a_row, const T* panels, T* c, std::int64_t ldc) {
  const RowGroups groups(M, kRows<T>);
  each_panel<T>(N, columns, [&](std::int64_t j, auto packets) {
    constexpr std::int64_t kColumns = packets * kLanes<T>;
    groups.each(0, groups.count, [&](int size, std::int64_t m, std::int64_t tiles) {
      with_constant<1, kRows<T>>(size, [&](auto rows) {
        panel_tiles<T, rows, packets, Columns::packed>(a + m * a_row, a_row, {panels + j * K, kColumns}, K,
                                                       {c + m * ldc + j, ldc, kColumns, false}, tiles);
      });
    });
  });
}

}  // namespace

// ---- the table of products of this level ------------------------------------------------------------------

namespace {

template <class T>
constexpr ProductKernels<T> kernels_of() {
  ProductKernels<T> k{.rounds_once = kRoundsOnce,
                      .lanes = kLanes<T>,
                      .product_columns = 12 * kLanes<T>,
                      .product = product<T>,
                      .pack_panels = nullptr,
                      .product_of_panels = nullptr,
                      .pack_gates = pack_gates<T>,
                      .pack_transposed = pack_transposed<T>,
                      .packed_product = packed_product<T>};
  if constexpr (std::is_same_v<T, float>) k.pack_panels = pack_panels<T>, k.product_of_panels = product_of_panels<T>;
  return k;
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(ProductKernels, product_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
