#pragma once
/// The product of matrices in memory.
#include <cstdint>

#include "ferrite/tensor/kernel/matrix.h"

namespace ferrite::detail {

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
