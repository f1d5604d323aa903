/// Kernels that do not reduce across tiles: their tiles, dealt to threads.
#include "ferrite/compile/fuse/detail/worker.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

void Kernel::run(std::byte* const* bases) const {
  if (axes.across != Across::none) return run_across(bases);
  run(bases, 0, tiling.tiles());
}

void Kernel::run(std::byte* const* bases, std::int64_t first, std::int64_t last) const {
  const std::int64_t count = last - first;
  const std::int64_t per_tile = tiling.tile_rows ? tiling.tile_rows * tiling.length : tiling.tile;
  if (std::min(count * per_tile, tiling.elements()) < 2 * kChunkElements) {
    Worker(*this, bases).run(first, last);
    return;
  }
  const std::int64_t per_chunk = std::max<std::int64_t>(1, kChunkElements / per_tile);
  parallel_for((count + per_chunk - 1) / per_chunk, [&](std::int64_t c) {
    Worker(*this, bases).run(first + c * per_chunk, std::min(last, first + (c + 1) * per_chunk));
  });
}

}  // namespace ferrite::detail
