/// Recurrences forward: rows of a batch, shared among threads.
#include <algorithm>

#include "ferrite/nn/recurrent/detail/recurrence_kernels.h"
#include "ferrite/tensor/kernel/gemm.h"
#include "ferrite/tensor/kernel/room.h"
#include "ferrite/tensor/threads.h"
#include "ferrite_levels.h"

namespace ferrite::nn::detail {

#define FERRITE_DECLARE(level)                   \
  namespace level {                              \
  extern const RecurrenceTable recurrence_table; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {
#define FERRITE_TABLE(level) &level::recurrence_table,
constexpr const RecurrenceTable* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
}  // namespace

constinit const ferrite::detail::TableInUse<RecurrenceTable> recurrence_in_use(kTables);

std::int64_t rows_of_a_chunk(std::int64_t batch, std::int64_t work_of_a_row) {
  constexpr std::int64_t kRows = 8;  // of a tile
  const std::int64_t sharers = thread_count();
  if (sharers == 1 || batch <= kRows || batch * work_of_a_row < ferrite::detail::kWorthSharing) return batch;
  const std::int64_t each = (batch + sharers - 1) / sharers;
  return (each + kRows - 1) / kRows * kRows;
}

template <class T>
void run_recurrence(const Recurrence<T>& r, const RecurrenceOut<T>& out) {
  const RecurrenceKernels<T>& k = recurrence_kernels<T>();
  const std::int64_t rows = rows_of_a_chunk(r.B, r.T_ * r.columns() * (r.P + r.D));
  if (r.B == 0) return;
  ferrite::detail::parallel_for((r.B + rows - 1) / rows, [&](std::int64_t chunk) {
    const std::int64_t begin = chunk * rows, end = std::min(r.B, begin + rows);
    ferrite::detail::Room<T> memory(k.memory(r, out, end - begin));
    k.rows(k.of(*r.cell), r, out, begin, end, memory.get());
  });
}
template void run_recurrence(const Recurrence<float>&, const RecurrenceOut<float>&);
template void run_recurrence(const Recurrence<double>&, const RecurrenceOut<double>&);

}  // namespace ferrite::nn::detail
