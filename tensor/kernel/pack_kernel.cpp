/// Matrices in the order in which tiles read them (pack.h), and products with them.
#include <algorithm>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/tile.h"
#include "ferrite/tensor/kernel/transpose.h"

namespace ferrite::detail::FERRITE_LEVEL {

template <class T>
void pack_gates(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t gates, std::int64_t units,
                std::int64_t gate_step, T* to) {
  constexpr std::int64_t W = kLanes<T>;
  for (std::int64_t j = 0; j < units; j += W) {
    const std::int64_t n = std::min(W, units - j);
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t g = 0; g < gates; ++g, to += W) {
        const T* from = w + k * row_step + g * gate_step + j;
        if (n == W) {
          Packet<T>::load(from).store(to);
        } else {
          std::copy_n(from, n, to);
          std::fill(to + n, to + W, T(0));
        }
      }
  }
}

template <class T>
void pack_transposed(const T* w, std::int64_t row_step, std::int64_t K, std::int64_t units, T* to,
                     std::int64_t block_rows) {
  constexpr std::int64_t W = kLanes<T>;
  for (std::int64_t j = 0; j < units; j += W, to += block_rows * W) {
    const std::int64_t n = std::min(W, units - j);
    std::int64_t k = 0;
    if constexpr (W > 1) {
      for (; n == W && k + W <= K; k += W) transpose_square<T>(w + j * row_step + k, row_step, to + k * W, W);
    }
    for (; k < K; ++k) {
      for (std::int64_t i = 0; i < n; ++i) to[k * W + i] = w[(j + i) * row_step + k];
      std::fill(to + k * W + n, to + (k + 1) * W, T(0));
    }
  }
}

namespace {

/// Stores the sums of a row, plus the bias where there is one.
template <class T>
struct StoreRow {
  T* c;
  const T* bias;
  std::int64_t columns;
  [[gnu::always_inline]] void operator()(std::int64_t row, std::int64_t j, std::int64_t n,
                                         const Packet<T>* sums) const {
    put(c + row * columns + j, bias ? sums[0] + Packet<T>::load(bias + j) : sums[0], n);
  }
};

/// One column, K at most kBlockK: the general product takes rows as lanes, so that none is idle.
template <class T>
void one_column(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c) {
  alignas(64) T column[kBlockK];
  for (std::int64_t k = 0; k < w.K; ++k) column[k] = w.data[k * w.k_step];
  product<T>(rows, 1, w.K, {a, a_row, 1}, {column, 1, 1}, c, 1, false);
  for (std::int64_t i = 0; bias && i < rows; ++i) c[i] = c[i] + bias[0];
}

/// next_sums of some packets of outputs.
template <class T>
struct NextSums {
  using V = Packet<T>;
  static constexpr std::int64_t W = kLanes<T>;
  const GateMatrix<T>& w;
  std::int64_t taps, row;
  const T *x, *sums;
  T* next;
  const BehindSums<T>& behind;
  T* y;

  /// U packets, from the last taps to the first: what they read may be written by those before them.
  template <int U>
  void packets(std::int64_t block) const {
    std::int64_t left = taps;
    for (; left >= 4; left -= 4) some_taps<4, U>(block, left - 4);
    switch (left) {
      case 1: return some_taps<1, U>(block, 0);
      case 2: return some_taps<2, U>(block, 0);
      case 3: return some_taps<3, U>(block, 0);
      default: return;
    }
  }
  /// x under P taps from `first` on.
  template <int P, int U>
  void some_taps(std::int64_t block, std::int64_t first) const {
    V acc[static_cast<std::size_t>(P)][static_cast<std::size_t>(U)];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u)
        acc[p][u] = first + p > 0 ? V::load(sums + (first + p - 1) * row + (block + u) * W) : V(T(0));
    const T* column = w.data + block * w.u_step + first * w.g_step;
    for (std::int64_t i = 0; i < w.K; ++i, column += w.k_step) {
      const V value(x[i]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) acc[p][u] = fma(value, V::load(column + p * w.g_step + u * w.u_step), acc[p][u]);
    }
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
#pragma GCC unroll 4
      for (int u = 0; u < U; ++u) {
        const std::int64_t j = (block + u) * W;
        if (first + p + 1 < taps) {
          acc[p][u].store(next + (first + p) * row + j);
        } else {
          V sum = behind.bias ? acc[p][u] + V::load(behind.bias + j) : acc[p][u];
          if (behind.added) sum = sum + V::load(behind.added + j);
          (behind.relu ? Relu::f(sum) : sum).store(y + j);
        }
      }
  }
};

/// channel_sums of some packets of steps: weights are read where next_sums has them, number by number.
template <class T>
struct ChannelSums {
  using V = Packet<T>;
  static constexpr std::int64_t W = kLanes<T>;
  static constexpr int kMost = kManyRegisters ? 4 : 2;  ///< packets of steps
  const GateMatrix<T>& w;
  const ChannelRows<T>& x;
  std::int64_t pitch;  ///< of y
  const BehindSums<T>& behind;
  T* y;

  /// P packets from step t on, of all outputs: up to four at once, as many as share a block of the weights.
  template <int P>
  void packets(std::int64_t t) const {
    for (std::int64_t first = 0; first < w.units; first += W) {
      const T* const block = w.data + first / W * w.u_step;
      std::int64_t j = 0;
      const std::int64_t n = std::min(W, w.units - first);
      for (; j + 4 <= n; j += 4) outputs<P, 4>(t, first + j, block + j);
      switch (n - j) {
        case 1: outputs<P, 1>(t, first + j, block + j); break;
        case 2: outputs<P, 2>(t, first + j, block + j); break;
        case 3: outputs<P, 3>(t, first + j, block + j); break;
        default: break;
      }
    }
  }
  /// U outputs from j on.
  template <int P, int U>
  void outputs(std::int64_t t, std::int64_t j, const T* weights) const {
    V acc[static_cast<std::size_t>(U)][static_cast<std::size_t>(P)];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[u][p] = V(T(0));
    for (std::int64_t tap = 0; tap < x.count; ++tap) {
      const T *from = x.taps[tap] + t, *column = weights + tap * w.g_step;
      for (std::int64_t i = 0; i < w.K; ++i, from += x.pitch, column += w.k_step) {
        V value[static_cast<std::size_t>(P)];
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) value[p] = V::load(from + p * W);
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
          const V weight(column[u]);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) acc[u][p] = fma(value[p], weight, acc[u][p]);
        }
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) {
        const std::int64_t at = (j + u) * pitch + t + p * W;
        V sum = behind.bias ? acc[u][p] + V(behind.bias[j + u]) : acc[u][p];
        if (behind.added) sum = sum + V::load(behind.added + at);
        (behind.relu ? Relu::f(sum) : sum).store(y + at);
      }
  }
};

}  // namespace

template <class T>
void next_sums(const GateMatrix<T>& w, std::int64_t taps, const T* x, const T* sums, T* next,
               const BehindSums<T>& behind, T* y) {
  const NextSums<T> of{w, taps, padded<T>(w.units), x, sums, next, behind, y};
  const std::int64_t blocks = packets_of<T>(w.units);
  std::int64_t block = 0;
  for (; block + 2 <= blocks; block += 2) of.template packets<2>(block);
  if (block < blocks) of.template packets<1>(block);
}

template <class T>
void channel_sums(const GateMatrix<T>& w, const ChannelRows<T>& x, std::int64_t steps, const BehindSums<T>& behind,
                  T* y) {
  const ChannelSums<T> of{w, x, packets_of<T>(steps) * kLanes<T>, behind, y};
  std::int64_t t = 0;
  if constexpr (ChannelSums<T>::kMost == 4)
    for (; t + 4 * kLanes<T> <= of.pitch; t += 4 * kLanes<T>) of.template packets<4>(t);
  for (; t + 2 * kLanes<T> <= of.pitch; t += 2 * kLanes<T>) of.template packets<2>(t);
  if (t < of.pitch) of.template packets<1>(t);
}

template <class T>
void packed_product(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c) {
  if (w.units == 1 && rows >= kLanes<T> && w.K <= kBlockK) return one_column(w, rows, a, a_row, bias, c);
  each_unit<T, 1>(w, rows, a, a_row, StoreRow<T>{c, bias, w.units});
}

template void pack_gates(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_transposed(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void packed_product(const GateMatrix<float>&, std::int64_t, const float*, std::int64_t, const float*, float*);
template void next_sums(const GateMatrix<float>&, std::int64_t, const float*, const float*, float*,
                        const BehindSums<float>&, float*);
template void channel_sums(const GateMatrix<float>&, const ChannelRows<float>&, std::int64_t, const BehindSums<float>&,
                           float*);
#ifndef FERRITE_ABOVE_AVX2
template void pack_gates(const double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*);
template void pack_transposed(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t);
template void packed_product(const GateMatrix<double>&, std::int64_t, const double*, std::int64_t, const double*,
                             double*);
template void next_sums(const GateMatrix<double>&, std::int64_t, const double*, const double*, double*,
                        const BehindSums<double>&, double*);
template void channel_sums(const GateMatrix<double>&, const ChannelRows<double>&, std::int64_t,
                           const BehindSums<double>&, double*);
#endif

}  // namespace ferrite::detail::FERRITE_LEVEL
