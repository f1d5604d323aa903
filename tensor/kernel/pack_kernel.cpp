/// Matrices in the order in which tiles read them (pack.h), and products with them.
#include <algorithm>

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

/// Computes one column, K at most kBlockK: the general product takes rows as lanes, so that none is idle.
template <class T>
void one_column(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c) {
  alignas(64) T column[kBlockK];
  for (std::int64_t k = 0; k < w.K; ++k) column[k] = w.data[k * w.k_step];
  product<T>(rows, 1, w.K, {a, a_row, 1}, {column, 1, 1}, c, 1, false);
  for (std::int64_t i = 0; bias && i < rows; ++i) c[i] = c[i] + bias[0];
}

}  // namespace

template <class T>
void packed_product(const GateMatrix<T>& w, std::int64_t rows, const T* a, std::int64_t a_row, const T* bias, T* c) {
  if (w.units == 1 && rows >= kLanes<T> && w.K <= kBlockK) return one_column(w, rows, a, a_row, bias, c);
  each_unit<T, 1>(w, rows, a, a_row, StoreRow<T>{c, bias, w.units});
}

template void pack_gates(const float*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, float*);
template void pack_transposed(const float*, std::int64_t, std::int64_t, std::int64_t, float*, std::int64_t);
template void packed_product(const GateMatrix<float>&, std::int64_t, const float*, std::int64_t, const float*, float*);
#ifndef FERRITE_ABOVE_AVX2
template void pack_gates(const double*, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double*);
template void pack_transposed(const double*, std::int64_t, std::int64_t, std::int64_t, double*, std::int64_t);
template void packed_product(const GateMatrix<double>&, std::int64_t, const double*, std::int64_t, const double*,
                             double*);
#endif

}  // namespace ferrite::detail::FERRITE_LEVEL
