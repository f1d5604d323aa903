#pragma once
/// Matrices in memory as products read them, and their product.
#include <cstdint>

namespace ferrite::detail {

inline constexpr std::int64_t kBlockK = 256;  ///< the order of summation: never changed without changing every result

/// A matrix somewhere in memory: element (i, j) is at data[i * row + j * col].
template <class T>
struct MatrixView {
  const T* data;
  std::int64_t row;
  std::int64_t col;
};

/// A matrix [K, G * units] whose columns belong to G gates of some units: packet (unit block u, gate g) of row k is
/// at data + k * k_step + u * u_step + g * g_step. Packed or as it stands: both are read by the same loop.
template <class T>
struct GateMatrix {
  const T* data = nullptr;
  std::int64_t K = 0;
  std::int64_t units = 0;
  std::int64_t k_step = 0;
  std::int64_t u_step = 0;
  std::int64_t g_step = 0;
};

/// Products of so many multiply-adds at least are shared among threads.
inline constexpr std::int64_t kWorthSharing = 1 << 20;

/// C [M, N] = A [M, K] . B [K, N], C row-major with `ldc` elements from row to row. Every element of C is the sum,
/// in ascending order, of blocks of 256 consecutive k, each block one ascending chain of fused multiply-adds
/// (docs/numerics.md, rule 2): its bits do not depend on M, N, strides, packing or threads. T is float or double.
/// Operands lie in the storage of tensors: B is read up to 64 bytes past its end. With `add`, which takes
/// K <= 256, C + A . B: the same bits as the product and then the sum.
template <class T>
void gemm(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
          bool add = false);

extern template void gemm<float>(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*,
                                 std::int64_t, bool);
extern template void gemm<double>(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>,
                                  double*, std::int64_t, bool);

}  // namespace ferrite::detail
