/// How many elements of a kernel make a tile.
#include <algorithm>
#include <numeric>

#include "ferrite/compile/fuse/detail/kernel_stages.h"

namespace ferrite::detail {
namespace {

constexpr std::int64_t kFarBytes = 8 << 20;       ///< operands beyond this come slower than they are used
constexpr std::int64_t kFarTile = 256;            ///< elements: so few that what comes next can be asked for meanwhile
constexpr std::int64_t kOneStepTile = 4096;       ///< elements, where nothing is kept from step to step
constexpr std::int64_t kScratchBytes = 24 << 10;  ///< of all slots of a tile together: half of a first cache

/// How many operands come from memory, in long runs.
std::int64_t streams_from_afar(const Kernel::Tiling& t, const Kernel::Memory& m) {
  std::int64_t streams = 0;
  std::int64_t bytes = 0;
  for (const Kernel::Load& l : m.loads) {
    if (std::ranges::all_of(l.strides, [](std::int64_t s) { return s == 0; })) continue;
    ++streams;
    bytes += t.elements() * l.bytes;
  }
  return bytes > kFarBytes && t.length > t.tile ? streams : 0;
}

/// A tile of a reducing kernel holds whole rows.
void take_whole_rows(Kernel::Tiling& t, const Kernel::Axes& a) {
  t.tile = std::clamp<std::int64_t>(t.tile / a.reduced, 1, t.elements() / a.reduced) * a.reduced;
  t.tile_rows = t.tile / t.length;
}

/// Tiles end where blocks of the reduction end: of rows, so many elements; of columns, so many rows.
void end_with_blocks(Kernel::Tiling& t, const Kernel::Axes& a) {
  constexpr std::int64_t kShortRow = 256;
  const bool long_rows = a.across == Across::long_rows;
  const bool lines = long_rows ? t.length != a.across_elements && t.length <= kReductionBlock
                               : t.rows == a.across_elements && t.length <= kShortRow;
  t.tile = kReductionBlock;
  t.tile_rows = lines ? t.tile / t.length : 0;
  if (lines && !long_rows)
    while (kReductionBlock % t.tile_rows) --t.tile_rows;
  t.pieces = (t.length + t.tile - 1) / t.tile;
}

/// Whole rows where several fit, else pieces of one.
void fit_rows(Kernel::Tiling& t, const Kernel::Axes& a) {
  if (t.length > t.tile || t.rows == 1) {
    t.tile_rows = 0;
    t.pieces = (t.length + t.tile - 1) / t.tile;
    return;
  }
  const std::int64_t fit = t.tile / t.length;
  const std::int64_t even = 16 / std::gcd(t.length, std::int64_t{16});  // so many rows end on a line
  t.tile_rows = std::min(t.rows, fit >= even ? fit / even * even : fit);
  if (a.extents.rank() < 2 || t.tile_rows == t.rows) return;
  // A little fewer, where these make up the axis: what is repeated along the axes before is then read in place.
  for (std::int64_t fewer = t.tile_rows; fewer > 0 && 2 * fewer > t.tile_rows; fewer -= std::min(even, fewer))
    if (a.extents[-2] % fewer == 0) {
      t.tile_rows = fewer;
      return;
    }
}

}  // namespace

Kernel::Tiling choose_tiles(const MergedAxes& merged, const Kernel::Slots& slots, const Kernel::Program& program) {
  const Kernel::Axes& a = merged.axes;
  Kernel::Tiling t;
  t.length = a.extents[-1];
  t.rows = a.extents.numel() / t.length;
  std::int64_t written = 0, steps = 0;
  for (const Kernel::Instruction& i : program.instructions) {
    written += i.step != Kernel::Step::store;
    steps += i.step != Kernel::Step::store && i.step != Kernel::Step::load;
  }
  const std::int64_t bytes = slots.widest(1) * std::clamp<std::int64_t>(written, 1, 12);
  t.tile = std::clamp<std::int64_t>(kScratchBytes / bytes / 64 * 64, 256, 1024);
  const bool streamed = t.elements() * slots.widest(1) > kStreamBytes;  // through a tile that stays in the first cache
  if (steps == 1 && !a.reduced && !streamed) t.tile = kOneStepTile;
  if (a.reduced) {
    take_whole_rows(t, a);
  } else if (a.across != Across::none) {
    end_with_blocks(t, a);
  } else {
    const std::int64_t streams = steps > 1 ? streams_from_afar(t, merged.memory) : 0;
    t.far = streams > 1;
    if (streams > 0) t.tile = t.far ? kFarTile : 2 * kFarTile;
    fit_rows(t, a);
  }
  return t;
}

}  // namespace ferrite::detail
