#pragma once
/// How one thread runs tiles of a kernel.
#include <algorithm>
#include <cstring>

#include "ferrite/compile/fuse/detail/tiles.h"
#include "ferrite/tensor/kernel/scratch.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ferrite::detail {

/// Copies whole lines to memory without reading it into a cache first.
inline void stream(std::byte* to, const std::byte* from, std::int64_t bytes) {
#if defined(__SSE2__)
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    for (std::int64_t at = 0; at < bytes; at += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(from + at)));
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
/// Makes streamed lines visible to other threads.
inline void end_streaming() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

/// What a worker needs for its tiles.
inline std::size_t tile_bytes(const Kernel& k) {
  const auto lines = static_cast<std::int64_t>(k.slots.repeated_loads.size()) * kLineBytes;
  const auto table = static_cast<std::int64_t>(k.slots.all.size() * sizeof(std::byte*));
  return static_cast<std::size_t>(k.slots.scratch_pieces * k.slots.piece_bytes + lines + table);
}

/// Where the rows of a tile begin: the index over the outer axes is the same for all.
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

/// One thread at work on some tiles of a kernel.
class Worker {
 public:
  Worker(const Kernel& k, std::byte* const* bases) : k_(k), bases_(bases) {
    pieces_ = kernel_memory().tiles.take(tile_bytes(k));
    lines_ = pieces_ + k.slots.scratch_pieces * k.slots.piece_bytes;
    at_ = reinterpret_cast<std::byte**>(lines_ + static_cast<std::int64_t>(k.slots.repeated_loads.size()) * kLineBytes);
    place_slots();
  }

  void run(std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) run(tile(i), i == first);
    end();
  }

  /// One tile; what all tiles share is loaded with the first.
  void run(const Tile& t, bool first) {
    point(t);
    const Tile rows = rows_of(t);
    std::size_t next = k_.tiling.far ? 0 : k_.slots.directs.size();
    for (const Kernel::Instruction& step : k_.program.instructions) {
      if (next < k_.slots.directs.size()) fetch_ahead(k_.slots.directs[next++], t);
      execute(step, step.of_rows ? rows : t, first);
    }
    while (next < k_.slots.directs.size()) fetch_ahead(k_.slots.directs[next++], t);
  }
  void end() {
    if (streamed_) end_streaming();
  }
  /// What a slot holds since the last tile.
  const std::byte* slot(std::uint16_t s) const { return at_[s]; }

 private:
  Tile tile(std::int64_t i) const {
    if (k_.tiling.tile_rows) {
      const std::int64_t row = i * k_.tiling.tile_rows;
      return {row, std::min(k_.tiling.tile_rows, k_.tiling.rows - row), 0, k_.tiling.length};
    }
    const std::int64_t column = i % k_.tiling.pieces * k_.tiling.tile;
    return {i / k_.tiling.pieces, 1, column, std::min(k_.tiling.tile, k_.tiling.length - column)};
  }

  /// The same tile of a reducing kernel, seen as one element for each of its rows.
  Tile rows_of(const Tile& t) const {
    if (!k_.axes.reduced) return t;
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
    for (std::size_t j = 0; j < k_.slots.repeated_loads.size(); ++j) {
      const Kernel::Load& l = k_.memory.loads[k_.slots.repeated_loads[j]];
      std::byte* to = lines_ + static_cast<std::int64_t>(j) * kLineBytes;
      by_size(l.bytes, [&](auto z) {
        using T = decltype(z);
        std::fill_n(reinterpret_cast<T*>(to), kLineBytes / static_cast<std::int64_t>(sizeof(T)),
                    *reinterpret_cast<const T*>(address(l.from)));
      });
    }
  }
  std::byte* line(std::uint32_t index) const {
    if (index >= k_.slots.literals.size())
      return lines_ + static_cast<std::int64_t>(index - k_.slots.literals.size()) * kLineBytes;
    return const_cast<std::byte*>(k_.slots.literals[index].bytes);  // only read
  }

  /// Where the elements of a tile stand in a buffer that is read or written in place.
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
      // Whole lines are written: what does not end on one goes through scratch, unless nothing follows.
      const Kernel::Store& store = k_.memory.stores[slot.index];
      const bool whole_lines = t.elements() * slot.bytes % kLineBytes == 0 ||
                               (last && !store.window && begin * slot.bytes % kLineBytes == 0);
      at_[s] = whole_lines && !streams(store) ? start(store.to, store.strides, store.bytes, t, corner)
                                              : pieces_ + slot.scratch * k_.slots.piece_bytes;
    }
  }

  /// Asks for what the tile after the next reads: operands are read in turn, a tile of each, which hardware does not
  /// take for streams. Between instructions, so that never more lines are asked for than can be on their way.
  void fetch_ahead(std::uint16_t s, const Tile& t) const {
    const Kernel::SlotInfo& slot = k_.slots[s];
    if (slot.output) return;
    const std::byte* const from = at_[s] + 2 * t.elements() * slot.bytes;
    for (std::int64_t b = 0; b < t.elements() * slot.bytes; b += kLineBytes) __builtin_prefetch(from + b);
  }

  /// Whether a result is so large that it leaves the caches before anybody reads it. One operand alone leaves the
  /// memory enough time: there the detour through scratch costs more than it saves.
  bool streams(const Kernel::Store& s) const {
    return s.dense && !s.of_rows && k_.memory.loads.size() > 1 && k_.tiling.elements() * s.bytes > kStreamBytes;
  }

  void execute(const Kernel::Instruction& i, const Tile& t, bool first) {
    switch (i.step) {
      case Kernel::Step::apply: {
        const void* in[3] = {at_[i.in[0]], at_[i.in[1]], at_[i.in[2]]};
        return i.block(in, i.run, at_[i.slot], t.elements());
      }
      case Kernel::Step::chain: return chain(i, t);
      case Kernel::Step::load: return load(i, t, first);
      case Kernel::Step::fill: {
        const Kernel::Filling& f = k_.memory.fillings[i.index];
        return by_size(f.bytes,
                       [&](auto z) { fill<decltype(z)>(k_.axes.of(i.of_rows), f, t, at_[i.in[0]], at_[i.slot]); });
      }
      case Kernel::Step::spread:
        return by_size(k_.slots[i.slot].bytes, [&](auto z) { spread<decltype(z)>(t, at_[i.in[0]], at_[i.slot]); });
      case Kernel::Step::reduce: return i.reduction(at_[i.in[0]], t.elements(), k_.axes.reduced, at_[i.slot]);
      case Kernel::Step::store: return store(i, t);
      case Kernel::Step::across: return;  // whoever runs the tiles reads the slot
    }
  }

  void chain(const Kernel::Instruction& i, const Tile& t) const {
    const Kernel::Chain& c = k_.program.chains[static_cast<std::size_t>(i.chain)];
    const auto elements = [this](std::uint16_t s) { return reinterpret_cast<const float*>(at_[s]); };
    Link links[kMostLinks + 2], *next = links;
    for (const Kernel::Chain::Stage& stage : c.stages)
      *next++ = {stage.kernel, elements(stage.slot), stage.skip, elements(stage.slot2), stage.skip2};
    if (c.by_rows) return run_chain(links, t.rows, t.columns);
    run_chain(links, 1, t.elements());
  }

  template <class T>
  void spread(const Tile& t, const std::byte* from, std::byte* to) const {
    const T* source = reinterpret_cast<const T*>(from);
    T* row = reinterpret_cast<T*>(to);
    for (std::int64_t r = 0; r * k_.axes.reduced < t.elements(); ++r, row += k_.axes.reduced)
      std::fill_n(row, k_.axes.reduced, source[r]);
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
    if (s.dense && streams(s) && k_.slots[i.slot].output) {
      const std::int64_t bytes = t.elements() * s.bytes;
      const std::int64_t whole = bytes / kLineBytes * kLineBytes;
      stream(to, at_[i.slot], whole);
      std::memcpy(to + whole, at_[i.slot] + whole, static_cast<std::size_t>(bytes - whole));
      streamed_ = true;
      return;
    }
    if (s.dense) {
      std::memmove(to, at_[i.slot], static_cast<std::size_t>(t.elements() * s.bytes));
      return;
    }
    by_size(s.bytes, [&](auto z) { scatter<decltype(z)>(k_.axes.of(i.of_rows), s, t, at_[i.slot], address(s.to)); });
  }

  const Kernel& k_;
  std::byte* const* bases_;
  bool streamed_ = false;
  std::byte* pieces_ = nullptr;
  std::byte* lines_ = nullptr;
  std::byte** at_ = nullptr;
};

}  // namespace ferrite::detail
