/// Kernels that reduce: their blocks, in the order in which eager reductions add them.
#include "ferrite/compile/fuse/detail/worker.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {
namespace {

/// Runs a kernel block by block: each block of a reduction becomes a partial result, and these are joined in order.
class AcrossRun {
 public:
  AcrossRun(const Kernel& k, std::byte* const* bases)
      : k_(k),
        bases_(bases),
        blocks_((k.axes.across_elements + kReductionBlock - 1) / kReductionBlock),
        results_(k.tiling.elements() / k.axes.across_elements) {}

  void reserve(KernelMemory& memory) const {
    (void)memory.partials.take(partial_bytes());
    (void)memory.blocks.take(std::max(line_bytes(), lane_bytes_of_all()));
  }
  void run() {
    partials_ = kernel_memory().partials.take(partial_bytes());
    const std::int64_t tasks = count();
    const auto task = [&](std::int64_t i) { run_task(i); };
    if (k_.tiling.elements() < 2 * kChunkElements) {
      for (std::int64_t i = 0; i < tasks; ++i) task(i);
    } else {
      parallel_for(tasks, task);
    }
    for (std::size_t i = 0; i < k_.memory.totals.size(); ++i) join(i);
  }

 private:
  static constexpr std::int64_t kMostLanes = 16;
  static constexpr std::int64_t kChunkBlocks = kChunkElements / kReductionBlock;

  static std::int64_t lines(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes; }
  bool in_pieces() const { return k_.tiling.length == k_.axes.across_elements; }
  std::int64_t chunks() const { return (blocks_ + kChunkBlocks - 1) / kChunkBlocks; }
  std::int64_t columns_of(std::int64_t piece) const {
    return k_.tiling.tile_rows ? k_.tiling.length : std::min(k_.tiling.tile, k_.tiling.length - piece * k_.tiling.tile);
  }

  std::size_t partial_bytes() const {
    std::int64_t bytes = 0;
    for (const Kernel::Total& t : k_.memory.totals) bytes += lines(blocks_ * results_ * size_of(t.dtype));
    return static_cast<std::size_t>(bytes);
  }
  /// The elements of a block that is gathered line by line.
  std::size_t line_bytes() const { return k_.memory.totals.size() * kReductionBlock * 8; }
  /// The lanes of a block of rows in the widest piece of columns.
  std::size_t lane_bytes_of_all() const {
    return k_.memory.totals.size() * static_cast<std::size_t>(kMostLanes * bytes_of_lane(columns_of(0)));
  }
  std::int64_t bytes_of_lane(std::int64_t width) const {
    std::int64_t widest = 4;
    for (const Kernel::Total& t : k_.memory.totals) widest = std::max(widest, size_of(t.dtype));
    return lines(width * widest);
  }

  std::int64_t count() const {
    if (k_.axes.across == Across::columns) return blocks_ * (results_ / k_.tiling.length) * k_.tiling.pieces;
    return in_pieces() ? results_ * chunks() : results_;
  }
  void run_task(std::int64_t i) {
    if (k_.axes.across == Across::columns) return columns(i);
    if (in_pieces()) return row_in_pieces(i / chunks(), i % chunks());
    row_in_lines(i);
  }

  std::byte* partial(std::size_t total, std::int64_t block, std::int64_t result) const {
    std::byte* at = partials_;
    for (std::size_t i = 0; i < total; ++i) at += lines(blocks_ * results_ * size_of(k_.memory.totals[i].dtype));
    return at + (block * results_ + result) * size_of(k_.memory.totals[total].dtype);
  }

  /// A row whose elements follow each other: tiles are blocks.
  void row_in_pieces(std::int64_t row, std::int64_t chunk) {
    Worker worker(k_, bases_);
    const std::int64_t first = chunk * kChunkBlocks;
    for (std::int64_t b = first; b < std::min(blocks_, first + kChunkBlocks); ++b) {
      const Tile t{row, 1, b * kReductionBlock, std::min(kReductionBlock, k_.tiling.length - b * kReductionBlock)};
      worker.run(t, b == first);
      for (std::size_t i = 0; i < k_.memory.totals.size(); ++i)
        k_.memory.totals[i].rows(worker.slot(k_.memory.totals[i].slot), 1, t.columns, partial(i, b, row));
    }
    worker.end();
  }

  /// A row of several lines: tiles are gathered until they make a block.
  void row_in_lines(std::int64_t row) {
    Worker worker(k_, bases_);
    std::byte* memory = kernel_memory().blocks.take(line_bytes());
    const std::int64_t lines = k_.axes.across_elements / k_.tiling.length;
    const std::int64_t step = k_.tiling.tile_rows ? k_.tiling.tile_rows : 1;
    std::int64_t done = 0;
    for (std::int64_t line = 0; line < lines; line += step)
      for (std::int64_t piece = 0; piece < (k_.tiling.tile_rows ? 1 : k_.tiling.pieces); ++piece) {
        const Tile t{row * lines + line, std::min(step, lines - line), piece * k_.tiling.tile, columns_of(piece)};
        worker.run(t, done == 0);
        for (std::size_t i = 0; i < k_.memory.totals.size(); ++i)
          gather_block(i, row, worker.slot(k_.memory.totals[i].slot), done, t.elements(), memory);
        done += t.elements();
      }
    worker.end();
  }

  /// Takes n more elements of a row of which `done` were taken, and reduces each block that is full.
  void gather_block(std::size_t total, std::int64_t row, const std::byte* from, std::int64_t done, std::int64_t n,
                    std::byte* memory) const {
    const Kernel::Total& t = k_.memory.totals[total];
    const std::int64_t bytes = size_of(t.dtype);
    std::byte* block = memory + static_cast<std::int64_t>(total) * kReductionBlock * 8;
    while (n > 0) {
      const std::int64_t at = done % kReductionBlock;
      const std::int64_t some = std::min(n, kReductionBlock - at);
      std::memcpy(block + at * bytes, from, static_cast<std::size_t>(some * bytes));
      from += some * bytes;
      done += some;
      n -= some;
      if (at + some == kReductionBlock || done == k_.axes.across_elements)
        t.rows(block, 1, at + some, partial(total, (done - 1) / kReductionBlock, row));
    }
  }

  /// A block of rows, in a piece of their columns: rows are dealt out to lanes, lanes halved.
  void columns(std::int64_t task) {
    Worker worker(k_, bases_);
    const std::int64_t middle = results_ / k_.tiling.length;  // rows of the kernel for one of the reduction
    const std::int64_t piece = task % k_.tiling.pieces;
    const std::int64_t at = task / k_.tiling.pieces % middle;
    const std::int64_t block = task / k_.tiling.pieces / middle;
    const std::int64_t width = columns_of(piece);
    const std::int64_t lane_bytes = bytes_of_lane(width);
    std::byte* memory = kernel_memory().blocks.take(lane_bytes_of_all());
    const std::int64_t first = block * kReductionBlock;
    const std::int64_t last = std::min(k_.axes.across_elements, first + kReductionBlock);
    for (std::size_t i = 0; i < k_.memory.totals.size(); ++i) {
      const JoinRuns runs = join_runs(*k_.memory.totals[i].kind, k_.memory.totals[i].dtype);
      const std::int64_t used = std::min(runs.lanes, last - first);
      for (std::int64_t l = 0; l < used; ++l) runs.clear(lane(memory, i, l, lane_bytes), width);
    }
    const std::int64_t step = k_.tiling.tile_rows ? k_.tiling.tile_rows : 1;
    for (std::int64_t r = first; r < last; r += step) {
      const Tile t{r * middle + at, std::min(step, last - r), piece * k_.tiling.tile * (k_.tiling.tile_rows ? 0 : 1),
                   width};
      worker.run(t, r == first);
      for (std::size_t i = 0; i < k_.memory.totals.size(); ++i) deal(i, worker, t, r - first, memory, lane_bytes);
    }
    worker.end();
    for (std::size_t i = 0; i < k_.memory.totals.size(); ++i)
      fold(i, memory, lane_bytes, last - first, width,
           partial(i, block, at * k_.tiling.length + piece * k_.tiling.tile));
  }
  static std::byte* lane(std::byte* memory, std::size_t total, std::int64_t lane, std::int64_t lane_bytes) {
    return memory + (static_cast<std::int64_t>(total) * kMostLanes + lane) * lane_bytes;
  }
  void deal(std::size_t i, const Worker& worker, const Tile& t, std::int64_t row, std::byte* memory,
            std::int64_t lane_bytes) const {
    const Kernel::Total& total = k_.memory.totals[i];
    join_runs(*total.kind, total.dtype)
        .deal({worker.slot(total.slot), t.rows, t.columns, row, lane(memory, i, 0, lane_bytes), lane_bytes});
  }
  /// Lanes that no row reached are left out, as the eager reduction does.
  void fold(std::size_t i, std::byte* memory, std::int64_t lane_bytes, std::int64_t rows, std::int64_t width,
            std::byte* to) const {
    const Kernel::Total& total = k_.memory.totals[i];
    const JoinRuns runs = join_runs(*total.kind, total.dtype);
    const std::int64_t used = std::min(runs.lanes, rows);
    for (std::int64_t half = runs.lanes / 2; half >= 1; half /= 2)
      for (std::int64_t l = 0; l < std::min(half, used - half); ++l)
        runs.join(lane(memory, i, l, lane_bytes), lane(memory, i, l + half, lane_bytes), width);
    std::memcpy(to, lane(memory, i, 0, lane_bytes), static_cast<std::size_t>(width * size_of(total.dtype)));
  }

  /// Blocks ascending.
  void join(std::size_t i) const {
    const Kernel::Total& total = k_.memory.totals[i];
    const JoinRuns runs = join_runs(*total.kind, total.dtype);
    std::byte* to = bases_[total.to.base] + total.to.offset;
    std::memcpy(to, partial(i, 0, 0), static_cast<std::size_t>(results_ * size_of(total.dtype)));
    for (std::int64_t b = 1; b < blocks_; ++b) runs.join(to, partial(i, b, 0), results_);
  }

  const Kernel& k_;
  std::byte* const* bases_;
  std::int64_t blocks_;
  std::int64_t results_;
  std::byte* partials_ = nullptr;
};

}  // namespace

void Kernel::reserve(KernelMemory& working) const {
  (void)working.tiles.take(tile_bytes(*this));
  if (axes.across != Across::none) AcrossRun(*this, nullptr).reserve(working);
}

void Kernel::run_across(std::byte* const* bases) const { AcrossRun(*this, bases).run(); }

}  // namespace ferrite::detail
