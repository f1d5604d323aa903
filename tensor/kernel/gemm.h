#pragma once
/// Matrices in memory as products read them, and their product.
#include <cstdint>

namespace ferrite::detail {

inline constexpr std::int64_t kBlockK = 256;  ///< part of the order of summation: changing it changes every result

/// A matrix somewhere in memory: element (i, j) is at data[i * row + j * col].
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row;
  std::int64_t col;
};

/// A matrix [K, G * units] whose columns belong to G gates of some units: packet (unit block u, gate g) of row k is at
/// data + k * k_step + u * u_step + g * g_step. It may be packed or in its original place: the same loop reads both.
template <class T>
struct GateMatrix {
  const T* data = nullptr;
  std::int64_t K = 0;
  std::int64_t units = 0;
  std::int64_t k_step = 0;
  std::int64_t u_step = 0;
  std::int64_t g_step = 0;
};

/// Products of at least this many multiply-adds are shared among threads.
inline constexpr std::int64_t kWorthSharing = 1 << 20;

/// Computes C [M, N] = A [M, K] . B [K, N], C row-major with `ldc` elements from row to row. Every element of C is the
/// sum, in ascending order, of blocks of 256 consecutive k, each block one ascending chain of fused multiply-adds
/// (docs/numerics.md, rule 2): its bits do not depend on M, N, strides, packing or threads. T is float or double.
/// Operands must lie in the storage of tensors: B is read up to 64 bytes past its end. With `add`, which requires K <=
/// 256, computes C + A . B with the bits of the product followed by the sum.
template <class T>
void gemm(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
          bool add = false);

extern template void gemm<float>(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*,
                                 std::int64_t, bool);
extern template void gemm<double>(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>,
                                  double*, std::int64_t, bool);

}  // namespace ferrite::detail
