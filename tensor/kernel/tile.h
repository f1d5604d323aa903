#pragma once
/// The innermost loop of products whose sums are finished in registers: some rows by some packets of columns. The order
/// of summation is the usual one: blocks of 256 k, ascending, each one chain (docs/numerics.md, rule 2).
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// Whether the machine has 32 vector registers, rather than 16.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool kManyRegisters = true;
#else
inline constexpr bool kManyRegisters = false;
#endif

/// Returns the number of packets that hold n elements.
template <class T>
constexpr std::int64_t packets_of(std::int64_t n) {
  return (n + kLanes<T> - 1) / kLanes<T>;
}

/// Returns n rounded up to whole packets: the distance of rows that are stored without a mask.
template <class T>
constexpr std::int64_t padded(std::int64_t n) {
  return packets_of<T>(n) * kLanes<T>;
}

/// Returns a b + c, rounded as packets round it.
template <class T>
[[gnu::always_inline]] inline T scalar_fma(T a, T b, T c) {
  if constexpr (kRoundsOnce) return std::fma(a, b, c);
  return a * b + c;
}

/// Returns x [n] . w [n] as one chain, n at most kBlockK, in few instructions: other work runs at the same time.
template <class T>
[[gnu::always_inline]] inline T one_sum(const T* x, const T* w, std::int64_t n) {
  T sum = 0;
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < n; ++k) sum = scalar_fma(x[k], w[k], sum);
  return sum;
}

/// A packet of sums for every row, unit block and gate of a tile.
template <class P, int MR, int U, int G>
using TileOf = P[static_cast<std::size_t>(MR)][static_cast<std::size_t>(U)][static_cast<std::size_t>(G)];

/// Computes sums[m][u][g], each one chain over k in [0, K), K at most kBlockK.
template <class T, int MR, int U, int G>
[[gnu::always_inline]] inline void tile_chain(const T* a, std::int64_t a_row, const T* b, const GateMatrix<T>& w,
                                              std::int64_t K, TileOf<Packet<T>, MR, U, G>& sums) {
  TileOf<RawPacket<T>, MR, U, G> acc;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 16
      for (int g = 0; g < G; ++g) acc[m][u][g] = RawPacket<T>{};
  const T* columns[static_cast<std::size_t>(U)];
#pragma GCC unroll 16
  for (int u = 0; u < U; ++u) columns[u] = b + u * w.u_step;
  // Rows that one pointer reaches: with more, addresses would not stay in registers.
  constexpr int kHalf = MR > 4 ? (MR + 1) / 2 : MR;
  const T* below = a + kHalf * a_row;
  const T* const end = a + K;
  const auto one = [&]() __attribute__((always_inline)) {
    RawPacket<T> bv[static_cast<std::size_t>(U)][static_cast<std::size_t>(G)];
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u) {
#pragma GCC unroll 16
      for (int g = 0; g < G; ++g) bv[u][g] = load_raw(columns[u] + g * w.g_step);
      columns[u] += w.k_step;
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const RawPacket<T> x = set_raw<T>((m < kHalf ? a : below)[m % kHalf * a_row]);
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u)
#pragma GCC unroll 16
        for (int g = 0; g < G; ++g) acc[m][u][g] = fma_raw(x, bv[u][g], acc[m][u][g]);
    }
  };
  if constexpr (MR == 1 && U == 1)  // so short a loop ends before its branch is predicted
    for (; end - a >= 4; ++a) one(), ++a, one(), ++a, one(), ++a, one();
  for (; a != end; ++a, ++below) one();
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 16
      for (int g = 0; g < G; ++g) sums[m][u][g] = acc[m][u][g];
}

/// Multiplies by all K rows of w, starting at its unit block `block`.
template <class T, int MR, int U, int G>
[[gnu::always_inline]] inline void tile_product(const T* a, std::int64_t a_row, const GateMatrix<T>& w,
                                                std::int64_t block, TileOf<Packet<T>, MR, U, G>& sums) {
  const T* b = w.data + block * w.u_step;
  tile_chain<T, MR, U, G>(a, a_row, b, w, std::min(w.K, kBlockK), sums);
  for (std::int64_t k = kBlockK; k < w.K; k += kBlockK) {
    TileOf<Packet<T>, MR, U, G> more;
    tile_chain<T, MR, U, G>(a + k, a_row, b + k * w.k_step, w, std::min(w.K - k, kBlockK), more);
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
      for (int u = 0; u < U; ++u)
#pragma GCC unroll 16
        for (int g = 0; g < G; ++g) sums[m][u][g] = sums[m][u][g] + more[m][u][g];
  }
}

/// Most rows of a tile with G gates; fewer_rows returns the next smaller number, for the remaining rows.
template <int G>
inline constexpr int kMostRows = kManyRegisters ? (G == 4 ? 6 : 8) : (G == 4 ? 3 : 4);
constexpr int fewer_rows(int rows, int gates) {
  if (gates == 1 && rows <= 4) return rows - 1;
  return rows == 8 ? 4 : rows == 6 || rows == 4 ? 2 : 1;
}
/// Returns the number of unit blocks that a tile of `rows` rows takes at once: enough chains to hide their latency, few
/// enough for the registers. One row whose weights are `far`, beyond the first cache, waits for them rather than for
/// its chains: with fewer at once, more of the gates' work overlaps with the product that follows.
constexpr int units_at_once(int rows, int gates, bool far) {
  const int chains = rows == 1 ? (kManyRegisters && far ? 4 : 12) : (kManyRegisters ? 24 : 12);
  const int most =
      std::max(1, rows == 3 && gates > 1 ? 1 : chains / (rows * gates));  // 9 chains: enough, with half the code
  return most >= 8 ? 8 : most >= 4 ? 4 : rows == 1 ? most : most >= 2 ? 2 : 1;
}

/// Calls f(row, first unit, number of units, sums[G]) for every packet of units and every row of a . w, in any order;
/// the sums of lanes beyond the units are meaningless. Where F has `kFewRows`, the rows are those of a batch, not of
/// all its steps. Where it has `given`, that holds the sums of one row, computed before, or null.
template <class T, int G, class F>
class EachUnit {
 public:
  EachUnit(const GateMatrix<T>& w, const T* a, std::int64_t a_row, const F& f) : w_(w), a_(a), a_row_(a_row), f_(f) {}

  /// Computes one row of one packet of units: a step of a small stream, where each instruction on the way counts.
  [[gnu::always_inline]] void run_alone() { tile_at<1, 1>(0, 0); }
  void run(std::int64_t rows) {
    constexpr std::int64_t kFirstCache = 48 * 1024, kStaysNear = 768 * 1024;  // bytes
    const std::int64_t blocks = packets_of<T>(w_.units);
    const std::int64_t bytes = w_.K * G * w_.units * static_cast<std::int64_t>(sizeof(T));
    far_ = bytes > kFirstCache;
    if (bytes <= kStaysNear || rows <= kMostRows<G>) return all_rows(rows, 0, blocks);
    constexpr std::int64_t kAtOnce = units_at_once(kMostRows<G>, G, true);
    for (std::int64_t block = 0; block < blocks; block += kAtOnce)
      all_rows(rows, block, std::min(blocks, block + kAtOnce));
  }

 private:
  /// Whether groups of rows differ by at most one row. Each group reads all weights, so that a short one at the end
  /// costs as much as the others; every size has its own code.
  static constexpr bool kEven = kManyRegisters && std::is_same_v<T, float> && requires { F::kFewRows; };

  void all_rows(std::int64_t rows, std::int64_t first, std::int64_t last) {
    if constexpr (kEven) {
      for (std::int64_t left = (rows + kMostRows<G> - 1) / kMostRows<G>, row = 0; left > 0; --left) {
        const std::int64_t now = (rows - row) / left;
        with_count<kMostRows<G>>(now, [&](auto MR) { row_groups<MR>(row, row + now, first, last); });
        row += now;
      }
    } else {
      row_groups<kMostRows<G>>(0, rows, first, last);
    }
  }
  template <int MR>
  void row_groups(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t last) {
    constexpr int kNear = units_at_once(MR, G, false), kFar = units_at_once(MR, G, true);
    for (; row + MR <= rows; row += MR) {
      if (kNear != kFar && far_) {
        unit_groups<MR, kFar>(row, first, last);
      } else {
        unit_groups<MR, kNear>(row, first, last);
      }
    }
    if constexpr (MR > 1 && !kEven) {
      if (row < rows) row_groups<fewer_rows(MR, G)>(row, rows, first, last);
    }
  }

  static constexpr std::int64_t groups(std::int64_t blocks, int of) { return (blocks + of - 1) / std::max(1, of); }
  template <int MR, int U>
  void unit_groups(std::int64_t row, std::int64_t block, std::int64_t last) {
    constexpr bool kAlike = MR == 1 && U > 1 && U <= 4;  // one row: groups that differ by at most one
    if (kAlike && (last - block < U || groups(last - block, U) == groups(last - block, U - 1)))
      return unit_groups<MR, std::max(1, U - 1)>(row, block, last);
    for (; block + U <= last; block += U) tile<MR, U>(row, block);
    if constexpr (U > 1) {
      if (block < last) unit_groups<MR, kAlike ? U - 1 : U / 2>(row, block, last);
    }
  }

  template <int MR, int U>
  [[gnu::noinline]] void tile(std::int64_t row, std::int64_t block) {
    tile_at<MR, U>(row, block);
  }
  template <int MR, int U>
  [[gnu::always_inline]] void tile_at(std::int64_t row, std::int64_t block) {
    constexpr std::int64_t W = kLanes<T>;
    TileOf<Packet<T>, MR, U, G> sums;
    product<MR, U>(row, block, sums);
    const auto finish = [&](int m, int u) {
      const std::int64_t j = (block + u) * W;
      f_(row + m, j, std::min(W, w_.units - j), sums[m][u]);
    };
    if constexpr (MR == 1 && U == 1) {  // always inlined
      f_(row, block * W, std::min(W, w_.units - block * W), sums[0][0]);
    } else if constexpr (std::is_same_v<T, float>) {  // unrolled to keep sums in registers; f64, for checks, stays
                                                      // small
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m)
#pragma GCC unroll 16
        for (int u = 0; u < U; ++u) finish(m, u);
    } else {
      for (int m = 0; m < MR; ++m)
        for (int u = 0; u < U; ++u) finish(m, u);
    }
  }

  template <int MR, int U>
  [[gnu::always_inline]] void product(std::int64_t row, std::int64_t block, TileOf<Packet<T>, MR, U, G>& sums) const {
    if constexpr (MR == 1 && requires { f_.given(); })
      if (const T* const given = f_.given()) {
#pragma GCC unroll 16
        for (int u = 0; u < U; ++u)
#pragma GCC unroll 16
          for (int g = 0; g < G; ++g)
            sums[0][u][g] = Packet<T>::load(given + g * f_.given_gate() + (block + u) * kLanes<T>);
        return;
      }
    tile_product<T, MR, U, G>(a_ + row * a_row_, a_row_, w_, block, sums);
  }

  const GateMatrix<T>& w_;
  const T* a_;
  std::int64_t a_row_;
  const F& f_;
  bool far_ = false;
};

template <class T, int G, class F>
void each_unit(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const F& f) {
  EachUnit<T, G, F>(w, a, a_row, f).run(rows);
}

// ---- sums in registers, and counts known at compile time ----------------------------------------------------

template <class T, int MR, int NV>
using Sums = RawPacket<T>[static_cast<std::size_t>(MR)][static_cast<std::size_t>(NV)];

/// Calls f(std::integral_constant<int, n>), n in [1, Most].
template <int Most, class F>
[[gnu::always_inline]] inline void with_count(std::int64_t n, const F& f) {
  if constexpr (Most == 1) {
    f(std::integral_constant<int, 1>());
  } else if (n == Most) {
    f(std::integral_constant<int, Most>());
  } else {
    with_count<Most - 1>(n, f);
  }
}

/// Splits n things into groups of at most `most`, as equal as possible: calls f(first, size) for each.
template <class F>
void equal_groups(std::int64_t n, std::int64_t most, const F& f) {
  const std::int64_t groups = (n + most - 1) / most;
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t size = (n - first) / (groups - g);
    f(first, size);
    first += size;
  }
}

}  // namespace ferrite::detail::FERRITE_LEVEL
