/// The product of matrices: its division among threads, and the memory that they pack into.
#include "ferrite/tensor/kernel/gemm.h"

#include <algorithm>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

std::byte* product_memory(PackedSide side, std::size_t bytes) {
  KernelMemory& memory = kernel_memory();
  return (side == PackedSide::rows ? memory.rows : memory.panels).take(bytes);
}

template <class T>
void gemm(std::int64_t M, std::int64_t N, std::int64_t K, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t ldc,
          bool add) {
  if (K == 0) {
    for (std::int64_t m = 0; m < M && !add; ++m) std::fill_n(c + m * ldc, N, T(0));
    return;
  }
  const ProductKernels<T>& k = products_in_use.of<T>();
  constexpr std::int64_t kRows = 128;
  if (thread_count() == 1 || M * N * K < kWorthSharing) return k.product(M, N, K, a, b, c, ldc, add);
  const std::int64_t down = (M + kRows - 1) / kRows;
  // Few rows: narrower shares, so that every thread finds several.
  const std::int64_t several = (2 * thread_count() + down - 1) / down;
  const std::int64_t panel = k.product_columns / 4;
  const std::int64_t columns = std::min(k.product_columns, ((N + several - 1) / several + panel - 1) / panel * panel);
  const std::int64_t across = (N + columns - 1) / columns;
  if (down * across == 1) return k.product(M, N, K, a, b, c, ldc, add);
  parallel_for(down * across, [&](std::int64_t t) {
    const std::int64_t m = t % down * kRows;
    const std::int64_t j = t / down * columns;
    k.product(std::min(kRows, M - m), std::min(columns, N - j), K, {a.data + m * a.row, a.row, a.col},
              {b.data + j * b.col, b.row, b.col}, c + m * ldc + j, ldc, add);
  });
}

template void gemm<float>(std::int64_t, std::int64_t, std::int64_t, MatrixView<float>, MatrixView<float>, float*,
                          std::int64_t, bool);
template void gemm<double>(std::int64_t, std::int64_t, std::int64_t, MatrixView<double>, MatrixView<double>, double*,
                           std::int64_t, bool);

}  // namespace ferrite::detail
