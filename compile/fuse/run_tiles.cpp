/// Runs kernels: their tiles are dealt to threads; blocks of reductions are added in the order of eager reductions.
#include "ferrite/compile/fuse/kernel.h"

#include <algorithm>
#include <cstring>

#include "ferrite/tensor/kernel/scratch.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

// ---- parts of a domain, and how their elements are gathered from buffers and scattered into them ----------

/// A part of the domain: whole rows, or a piece of one.
struct Tile {
  std::int64_t row;      ///< first row of the tile
  std::int64_t rows;     ///< number of rows in the tile
  std::int64_t column;   ///< column of each row's first element
  std::int64_t columns;  ///< number of columns of each row
  std::int64_t elements() const { return rows * columns; }
};

/// Iterates over the rows of a tile: index over the outer axes and offset under some strides.
class Rows {
 public:
  Rows(const Shape& extents, const Shape& strides, std::int64_t first) : extents_(extents), strides_(strides) {
    const int outer = extents.rank() - 1;
    for (int k = outer - 1; k >= 0; --k) {
      index_[k] = first % extents[k];
      first /= extents[k];
      offset_ += index_[k] * strides[k];
    }
  }
  std::int64_t offset() const { return offset_; }
  bool inside(const Box& box) const {
    for (int k = 0; k + 1 < extents_.rank(); ++k)
      if (index_[k] < box.begin[k] || index_[k] >= box.end[k]) return false;
    return true;
  }
  /// Returns the number of rows from here to the end of the last outer axis; they are `step` apart.
  std::int64_t straight() const {
    const int k = extents_.rank() - 2;
    return k < 0 ? 1 : extents_[k] - index_[k];
  }
  std::int64_t step() const { return extents_.rank() < 2 ? 0 : strides_[extents_.rank() - 2]; }
  /// Calls `next` n times, for n up to `straight`.
  void skip(std::int64_t n) {
    const int k = extents_.rank() - 2;
    if (k < 0) return;
    index_[k] += n - 1;
    offset_ += (n - 1) * strides_[k];
    next();
  }
  void next() {
    for (int k = extents_.rank() - 2; k >= 0; --k) {
      offset_ += strides_[k];
      if (++index_[k] < extents_[k]) return;
      offset_ -= strides_[k] * extents_[k];
      index_[k] = 0;
    }
  }

 private:
  const Shape& extents_;
  const Shape& strides_;
  std::int64_t index_[Shape::kMaxRank] = {};
  std::int64_t offset_ = 0;
};

template <class T>
void copy_run(T* to, const T* from, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    std::fill_n(to, n, *from);
  } else {
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

template <class T>
struct RowsOf {
  T* first;
  std::int64_t step;
};

/// Copies several rows at once; short rows of whole lines without a call for each.
template <class T>
void copy_rows(RowsOf<T> to, RowsOf<const T> from, std::int64_t stride, std::int64_t rows, std::int64_t columns) {
  const std::int64_t bytes = columns * static_cast<std::int64_t>(sizeof(T));
  if (stride != 1 || bytes % kLineBytes != 0 || bytes > 8 * kLineBytes) {
    for (std::int64_t r = 0; r < rows; ++r)
      copy_run(to.first + r * to.step, from.first + r * from.step, stride, columns);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    auto* target = reinterpret_cast<std::byte*>(to.first + r * to.step);
    const auto* source = reinterpret_cast<const std::byte*>(from.first + r * from.step);
    for (std::int64_t b = 0; b < bytes; b += kLineBytes) std::memcpy(target + b, source + b, kLineBytes);
  }
}

/// Calls f with an unsigned integer as large as an element: bits are only moved.
template <class F>
void by_size(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    default: return f(std::uint64_t{});
  }
}

template <class T>
T first_of(const RepeatedLine& line) {
  T v;
  std::memcpy(&v, line.bytes, sizeof v);
  return v;
}

/// Fills a line with copies of one value.
void repeat_over_line(const std::byte* from, std::int64_t bytes, std::byte* line) {
  const auto fill = [&](auto value) __attribute__((always_inline)) {
    std::memcpy(&value, from, sizeof value);
    for (std::size_t at = 0; at < kLineBytes; at += sizeof value) std::memcpy(line + at, &value, sizeof value);
  };
  if (bytes == 4) [[likely]]
    return fill(std::uint32_t{});
  by_size(bytes, fill);
}

/// The columns of a row that lie inside a box.
struct Span {
  std::int64_t begin, end;
};
inline Span columns_inside(const Tile& t, const Box& box) {
  const std::int64_t begin = std::clamp(box.begin[-1] - t.column, std::int64_t{0}, t.columns);
  return {begin, std::clamp(box.end[-1] - t.column, begin, t.columns)};
}

template <class T>
void gather(const Shape& extents, const Kernel::Load& l, const Tile& t, const std::byte* from, std::byte* slot) {
  T* to = reinterpret_cast<T*>(slot);
  const T* source = reinterpret_cast<const T*>(from);
  const std::int64_t stride = l.strides[-1];
  Rows rows(extents, l.strides, t.row);
  if (l.whole) {
    source += t.column * stride;
    for (std::int64_t left = t.rows; left > 0;) {
      const std::int64_t n = std::min(left, rows.straight());
      copy_rows<T>({to, t.columns}, {source + rows.offset(), rows.step()}, stride, n, t.columns);
      to += n * t.columns;
      left -= n;
      rows.skip(n);
    }
    return;
  }
  const T outside = first_of<T>(l.outside);
  const Span in = columns_inside(t, l.box);
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), to += t.columns) {
    if (!rows.inside(l.box) || in.begin == in.end) {
      std::fill_n(to, t.columns, outside);
      continue;
    }
    std::fill_n(to, in.begin, outside);
    copy_run(to + in.begin, source + rows.offset() + (t.column + in.begin) * stride, stride, in.end - in.begin);
    std::fill_n(to + in.end, t.columns - in.end, outside);
  }
}

template <class T>
void fill(const Shape& extents, const Kernel::Filling& f, const Tile& t, const std::byte* from, std::byte* slot) {
  const T* source = reinterpret_cast<const T*>(from);
  T* to = reinterpret_cast<T*>(slot);
  const T outside = first_of<T>(f.outside);
  const Span in = columns_inside(t, f.box);
  Rows rows(extents, extents, t.row);
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), to += t.columns, source += t.columns) {
    if (!rows.inside(f.box)) {
      std::fill_n(to, t.columns, outside);
      continue;
    }
    std::fill_n(to, in.begin, outside);
    std::copy_n(source + in.begin, in.end - in.begin, to + in.begin);
    std::fill_n(to + in.end, t.columns - in.end, outside);
  }
}

/// Spreads one element of each row over all `width` elements of the row; writes n elements in all.
template <class T>
void spread(std::int64_t n, std::int64_t width, const std::byte* from, std::byte* to) {
  const T* source = reinterpret_cast<const T*>(from);
  T* row = reinterpret_cast<T*>(to);
  for (std::int64_t r = 0; r * width < n; ++r, row += width) std::fill_n(row, width, source[r]);
}

template <class T>
void scatter(const Shape& extents, const Kernel::Store& s, const Tile& t, const std::byte* slot, std::byte* buffer) {
  const T* from = reinterpret_cast<const T*>(slot);
  T* to = reinterpret_cast<T*>(buffer);
  const std::int64_t stride = s.strides[-1];
  Rows rows(extents, s.strides, t.row);
  to += t.column * stride;
  if (stride == 1) {
    for (std::int64_t left = t.rows; left > 0;) {
      const std::int64_t n = std::min(left, rows.straight());
      copy_rows<T>({to + rows.offset(), rows.step()}, {from, t.columns}, 1, n, t.columns);
      from += n * t.columns;
      left -= n;
      rows.skip(n);
    }
    return;
  }
  for (std::int64_t r = 0; r < t.rows; ++r, rows.next(), from += t.columns) {
    T* row = to + rows.offset();
    for (std::int64_t i = 0; i < t.columns; ++i) row[i * stride] = from[i];
  }
}

// ---- how one thread runs tiles ----------------------------------------------------------------------------

/// Returns the bytes that a worker needs for its tiles.
inline std::size_t tile_bytes(const Kernel& k) {
  const auto lines = static_cast<std::int64_t>(k.slots.repeated_loads.size()) * kLineBytes;
  std::size_t table = k.slots.all.size() * sizeof(std::byte*);
  for (const Kernel::Chain& c : k.program.chains) table += c.stages.size() * sizeof(Link);
  return static_cast<std::size_t>(k.slots.scratch_pieces * k.slots.piece_bytes + lines) + table;
}

/// The first row of a tile: the index over the outer axes is the same for all loads and stores.
struct Corner {
  Corner(const Shape& extents, std::int64_t row) : outer(row == 0 ? 0 : extents.rank() - 1) {
    for (int k = outer - 1; k > 0; --k) {
      index[k] = row % extents[k];
      row /= extents[k];
    }
    if (outer > 0) index[0] = row;
  }
  std::int64_t offset(const Shape& strides) const {
    std::int64_t at = 0;
    for (int k = 0; k < outer; ++k) at += index[k] * strides[k];
    return at;
  }
  int outer;
  std::int64_t index[Shape::kMaxRank];
};

inline Tile tile_of(const Kernel::Tiling& t, std::int64_t i) {
  if (t.tile_rows) {
    const std::int64_t row = i * t.tile_rows;
    return {row, std::min(t.tile_rows, t.rows - row), 0, t.length};
  }
  if (i == 0) return {0, 1, 0, std::min(t.tile, t.length)};
  const std::int64_t column = i % t.pieces * t.tile;
  return {i / t.pieces, 1, column, std::min(t.tile, t.length - column)};
}

/// Runs some tiles of a kernel on one thread.
class Worker {
 public:
  Worker(const Kernel& k, std::byte* const* bases) : k_(k), bases_(bases) {
    pieces_ = kernel_memory().tiles.take(tile_bytes(k));
    lines_ = pieces_ + k.slots.scratch_pieces * k.slots.piece_bytes;
    at_ = reinterpret_cast<std::byte**>(lines_ + static_cast<std::int64_t>(k.slots.repeated_loads.size()) * kLineBytes);
    links_ = reinterpret_cast<Link*>(at_ + k.slots.all.size());
    place_slots();
  }

  void run(std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last;) {
      const std::int64_t next = k_.tiling.straight ? run_straight(i, last) : i;
      if (next == i) run(tile_of(k_.tiling, i), i == first);
      i = std::max(next, i + 1);
    }
    if (k_.tiling.in_memory) end_streaming();
  }

  /// Runs one tile; the first one also loads what all tiles share.
  void run(const Tile& t, bool first) {
    point(t);
    // No copy of t: it would be read by 16 bytes where 8 were written, and wait for all stores before it.
    Tile other;
    if (k_.axes.reduced) other = rows_of(t);
    for (const Kernel::Instruction& step : k_.program.instructions)
      execute(step, step.of_rows && k_.axes.reduced ? other : t, first);
  }
  /// Returns the contents of a slot after the last tile.
  const std::byte* slot(std::uint16_t s) const { return at_[s]; }

 private:
  /// Returns the same tile of a reducing kernel, seen as one element for each of its rows.
  Tile rows_of(const Tile& t) const {
    const std::int64_t lines = k_.axes.reduced / k_.tiling.length;
    return {t.row / lines, t.rows / lines, 0, 1};
  }

  std::byte* address(const Place& p) const { return bases_[p.base] + p.offset; }

  void place_slots() {
    for (std::size_t s = 0; s < k_.slots.all.size(); ++s) {
      const Kernel::SlotInfo& slot = k_.slots[s];
      at_[s] = slot.scratch >= 0 ? pieces_ + slot.scratch * k_.slots.piece_bytes : nullptr;
      if (slot.kind == Kernel::Slot::repeated) at_[s] = line(slot.index);
    }
    std::byte* to = lines_;
    for (const Kernel::RepeatedLoad& l : k_.slots.repeated_loads) {
      repeat_over_line(address(l.from), l.bytes, to);
      to += kLineBytes;
    }
  }
  std::byte* line(std::uint32_t index) const {
    if (index >= k_.slots.literals.size())
      return lines_ + static_cast<std::int64_t>(index - k_.slots.literals.size()) * kLineBytes;
    return const_cast<std::byte*>(k_.slots.literals[index].bytes);  // only read
  }

  /// Returns the address of a tile's elements in a buffer that is read or written in place.
  std::byte* start(const Place& p, const Shape& strides, std::int64_t bytes, const Tile& t,
                   bool of_rows = false) const {
    if (t.row == 0 && t.column == 0) return address(p);
    const std::int64_t row = t.row == 0 ? 0 : Rows(k_.axes.of(of_rows), strides, t.row).offset();
    return address(p) + (row + t.column * strides[-1]) * bytes;
  }

  std::byte* start(const Place& p, const Shape& strides, std::int64_t bytes, const Tile& t,
                   const Corner& corner) const {
    if (corner.outer == 0 && t.column == 0) return address(p);
    return address(p) + (corner.offset(strides) + t.column * strides[-1]) * bytes;
  }

  void point(const Tile& t) {
    const Corner corner(k_.axes.extents, t.row);
    const std::int64_t begin = t.row * k_.tiling.length + t.column;
    const bool last = begin + t.elements() == k_.tiling.elements();
    for (const std::uint16_t s : k_.slots.directs) {
      const Kernel::SlotInfo& slot = k_.slots[s];
      if (!slot.output) {
        const Kernel::Load& l = k_.memory.loads[slot.index];
        at_[s] = start(l.from, l.strides, l.bytes, t, corner);
        continue;
      }
      if (slot.kind == Kernel::Slot::rows) {
        const Kernel::Store& to = k_.memory.stores[slot.index];
        at_[s] = start(to.to, to.strides, to.bytes, t, corner);
        continue;
      }
      // Whole lines are written. A tile that does not end on one goes through scratch, unless nothing follows in the
      // buffer.
      const Kernel::Store& store = k_.memory.stores[slot.index];
      const bool whole_lines = t.elements() * slot.bytes % kLineBytes == 0 ||
                               (last && !store.window && begin * slot.bytes % kLineBytes == 0);
      at_[s] = whole_lines ? start(store.to, store.strides, store.bytes, t, corner)
                           : pieces_ + slot.scratch * k_.slots.piece_bytes;
    }
  }

  /// Runs the whole tiles that follow each other in a row, from tile i on, and returns the tile after them. Their
  /// addresses all advance by one tile, so each is looked up only once.
  std::int64_t run_straight(std::int64_t i, std::int64_t last) {
    const Tile t = tile_of(k_.tiling, i);
    const std::int64_t n = k_.tiling.tile, end = std::min(last, i + (k_.tiling.length - t.column) / n);
    if (i >= end) return i;
    point(t);
    Link* to = links_;
    for (const Kernel::Instruction& step : k_.program.instructions) {
      if (step.step == Kernel::Step::load) load(step, t, true);
      if (step.step == Kernel::Step::chain) to = write_links(k_, chain_of(step), at_, n, to);
    }
    for (std::int64_t row = 0; i < end; ++i, ++row) {
      const Link* links = links_;
      for (const Kernel::Instruction& step : k_.program.instructions) {
        if (step.step == Kernel::Step::apply) apply(step, n);
        if (step.step != Kernel::Step::chain) continue;
        run_chain(links, {row, 1, n, k_.tiling.far});
        links += chain_of(step).stages.size();
      }
      for (const std::uint16_t s : k_.slots.directs) at_[s] += n * k_.slots[s].bytes;
    }
    return end;
  }

  void execute(const Kernel::Instruction& i, const Tile& t, bool first) {
    switch (i.step) {
      case Kernel::Step::apply: return apply(i, t.elements());
      case Kernel::Step::chain: return chain(i, t);
      case Kernel::Step::load: return load(i, t, first);
      case Kernel::Step::fill: {
        const Kernel::Filling& f = k_.memory.fillings[i.index];
        return by_size(f.bytes,
                       [&](auto z) { fill<decltype(z)>(k_.axes.of(i.of_rows), f, t, at_[i.in[0]], at_[i.slot]); });
      }
      case Kernel::Step::spread:
        return by_size(k_.slots[i.slot].bytes,
                       [&](auto z) { spread<decltype(z)>(t.elements(), k_.axes.reduced, at_[i.in[0]], at_[i.slot]); });
      case Kernel::Step::reduce: return i.reduction(at_[i.in[0]], t.elements(), k_.axes.reduced, at_[i.slot]);
      case Kernel::Step::store: return store(i, t);
      case Kernel::Step::across: return;  // the caller reads the slot
    }
  }

  void apply(const Kernel::Instruction& i, std::int64_t n) const {
    const void* in[3] = {at_[i.in[0]], at_[i.in[1]], at_[i.in[2]]};
    i.block(in, i.run, at_[i.slot], n);
  }

  const Kernel::Chain& chain_of(const Kernel::Instruction& i) const {
    return k_.program.chains[static_cast<std::size_t>(i.chain)];
  }
  void chain(const Kernel::Instruction& i, const Tile& t) const {
    const Kernel::Chain& c = chain_of(i);
    Link links[kMostLinks + 2];
    write_links(k_, c, at_, 0, links);
    run_chain(links, c.by_rows ? ChainRows{0, t.rows, t.columns} : ChainRows{0, 1, t.elements()});
  }
  void load(const Kernel::Instruction& i, const Tile& t, bool first) {
    if (k_.slots[i.slot].kind != Kernel::Slot::scratch) return;
    const Kernel::Load& l = k_.memory.loads[i.index];
    if (l.once && !first) return;
    by_size(l.bytes, [&](auto z) { gather<decltype(z)>(k_.axes.of(i.of_rows), l, t, address(l.from), at_[i.slot]); });
  }

  void store(const Kernel::Instruction& i, const Tile& t) {
    const Kernel::Store& s = k_.memory.stores[i.index];
    if (k_.slots[i.slot].kind == Kernel::Slot::rows) return;
    std::byte* to = s.dense ? start(s.to, s.strides, s.bytes, t, i.of_rows) : nullptr;
    if (to == at_[i.slot]) return;
    if (s.dense) {
      std::memmove(to, at_[i.slot], static_cast<std::size_t>(t.elements() * s.bytes));
      return;
    }
    by_size(s.bytes, [&](auto z) { scatter<decltype(z)>(k_.axes.of(i.of_rows), s, t, at_[i.slot], address(s.to)); });
  }

  const Kernel& k_;
  std::byte* const* bases_;
  std::byte* pieces_ = nullptr;
  std::byte* lines_ = nullptr;
  std::byte** at_ = nullptr;
  Link* links_ = nullptr;
};

// ---- kernels that reduce: their blocks, in the order in which eager reductions add them -------------------

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
  /// Returns the bytes of a block that is gathered line by line.
  std::size_t line_bytes() const { return k_.memory.totals.size() * kReductionBlock * 8; }
  /// Returns the bytes of the lanes of a block of rows in the widest piece of columns.
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

  /// Reduces a row whose elements are contiguous: tiles are blocks.
  void row_in_pieces(std::int64_t row, std::int64_t chunk) {
    Worker worker(k_, bases_);
    const std::int64_t first = chunk * kChunkBlocks;
    for (std::int64_t b = first; b < std::min(blocks_, first + kChunkBlocks); ++b) {
      const Tile t{row, 1, b * kReductionBlock, std::min(kReductionBlock, k_.tiling.length - b * kReductionBlock)};
      worker.run(t, b == first);
      for (std::size_t i = 0; i < k_.memory.totals.size(); ++i)
        k_.memory.totals[i].rows(worker.slot(k_.memory.totals[i].slot), 1, t.columns, partial(i, b, row));
    }
  }

  /// Reduces a row of several lines: tiles are gathered until they make a block.
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
  }

  /// Takes n more elements of a row of which `done` were taken, and reduces each full block.
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

  /// Reduces a block of rows in a piece of their columns: rows are dealt to lanes, which are then joined in halves.
  void columns(std::int64_t task) {
    Worker worker(k_, bases_);
    const std::int64_t middle = results_ / k_.tiling.length;  // rows of the kernel for each row of the reduction
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
  /// Joins the lanes in halves. Lanes without rows are left out, as in the eager reduction.
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

  /// Joins the blocks in ascending order.
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

// ---- other kernels: their tiles, dealt to threads ---------------------------------------------------------

void Kernel::run(std::byte* const* bases) const {
  if (!one_tile.spots.empty()) return run_one_tile(bases);
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
