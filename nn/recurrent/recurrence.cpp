/// Recurrences forward: rows of a batch, shared among threads.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/kernel/tables.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::nn::detail {

FERRITE_FLOAT_TABLES(RecurrenceKernels, recurrence_kernels, recurrence_in_use)

std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row) {
  constexpr std::int64_t kRows = 8;  // of a tile
  const std::int64_t sharers = thread_count();
  if (sharers == 1 || batch <= kRows || batch * work_of_a_row < ferrite::detail::kWorthSharing) return batch;
  const std::int64_t each = (batch + sharers - 1) / sharers;
  return (each + kRows - 1) / kRows * kRows;
}

template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out) {
  const RecurrenceKernels<T>& k = recurrence_in_use.of<T>();
  const std::int64_t rows = rows_of_a_chunk(r.B, r.T_ * r.columns() * (r.P + r.D));
  if (r.B == 0) return;
  ferrite::detail::parallel_for((r.B + rows - 1) / rows, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * rows, end = std::min(r.B, begin + rows);
    ferrite::detail::Room<T> memory(k.memory(r, out, end - begin));
    k.rows(kernels_of<T>(*r.cell), r, out, begin, end, memory.get());
  });
}
template void run_recurrence(const Recurrence<float>&, const RecurrenceOut<float>&);
template void run_recurrence(const Recurrence<double>&, const RecurrenceOut<double>&);

}  // namespace ferrite::nn::detail
