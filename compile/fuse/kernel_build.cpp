/// Builds the kernel of a group: the program as written, then stage by stage one that runs. Each stage is a function of
/// the results of the stages before it.
#include "ferrite/compile/fuse/kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ferrite/tensor/operations.h"

namespace ferrite::detail {
namespace {

struct MergedAxes {
  Kernel::Axes axes;
  Kernel::Memory memory;
};

/// The slots of a kernel once every slot has its kind: which loads need no copy, which results are computed in place.
struct PlacedSlots {
  Kernel::Memory memory;
  Kernel::Slots slots;
};

// ---- cheap operations in a row as one instruction, whose values stay in registers -------------------------

/// Joins cheap operations, each of which reads only the result before it and values in memory, to one instruction.
class Chaining {
 public:
  Chaining(Kernel::Program program, const Kernel::Slots& slots)
      : to_(std::move(program)),
        slots_(slots),
        reads_(slots.all.size()),
        writer_(slots.all.size(), -1),
        gone_(to_.instructions.size()) {
    for (const Kernel::Instruction& i : to_.instructions) {
      for (std::uint32_t j = 0; j < i.reads(); ++j) ++reads_[i.in[j]];
      if (i.step == Kernel::Step::store) ++reads_[i.slot];
    }
  }

  Kernel::Program run() {
    for (std::size_t t = 0; t < to_.instructions.size(); ++t) {
      Kernel::Instruction& i = to_.instructions[t];
      if (i.step != Kernel::Step::apply || !is_cheap(i)) continue;
      const int first = value_of(i);
      if (first >= 0) {
        lengthen(writer_[i.in[first]], i, first);
      } else {
        begin(i);
      }
      writer_[i.slot] = static_cast<int>(t);
    }
    std::size_t t = 0;
    std::erase_if(to_.instructions, [&](const Kernel::Instruction&) { return gone_[t++] != 0; });
    return std::move(to_);
  }

 private:
  static bool is_cheap(const Kernel::Instruction& i) {
    return i.op && i.block == i.op->block(Dtype::f32) && link_through(*i.op, 0, false);
  }
  const Kernel::Chain& chain_of(const Kernel::Instruction& i) const {
    return to_.chains[static_cast<std::size_t>(i.chain)];
  }

  /// Returns the chain whose result only this instruction's j-th operand reads; null if there is none.
  const Kernel::Instruction* chain_before(const Kernel::Instruction& i, std::uint32_t j) const {
    const int w = writer_[i.in[j]];
    if (w < 0 || reads_[i.in[j]] != 1) return nullptr;
    const Kernel::Instruction& before = to_.instructions[static_cast<std::size_t>(w)];
    return before.of_rows == i.of_rows ? &before : nullptr;
  }

  /// Returns whether an operand is a product of two values in memory, which a link can compute on the way.
  bool is_product(const Kernel::Instruction& i, std::uint32_t j) const {
    const Kernel::Instruction* const before = chain_before(i, j);
    if (!before || !link_through_product(*i.op, 0, false, false)) return false;
    const Kernel::Chain& c = chain_of(*before);
    return c.links.size() == 1 && c.links[0].op == ops::mul;
  }

  /// Returns the index of the operand that becomes the value of a chain, if there is room in it; else -1.
  int value_of(const Kernel::Instruction& i) const {
    int value = -1;
    for (std::uint32_t j = 0; j < i.index; ++j) {
      const Kernel::Instruction* const before = chain_before(i, j);
      if (!before || before->index + i.index > kMostOperands || chain_of(*before).links.size() == kMostLinks) continue;
      if (value < 0 || is_product(i, 1 - j)) value = static_cast<int>(j);
    }
    return value;
  }

  void begin(Kernel::Instruction& i) {
    const bool second = i.index == 2 && slots_[i.in[0]].kind == Kernel::Slot::repeated;
    i.step = Kernel::Step::chain;
    i.chain = static_cast<int>(to_.chains.size());
    if (second) std::swap(i.in[0], i.in[1]);
    to_.chains.emplace_back().links.push_back({i.op, second ? 1U : 0U, i.index - 1, 0});
  }

  /// Lets the instruction replace the one before it and take over its links.
  void lengthen(int writer, Kernel::Instruction& i, int value) {
    const Kernel::Instruction& before = to_.instructions[static_cast<std::size_t>(writer)];
    const bool two = i.index == 2;
    Kernel::Chain::Operation link{i.op, static_cast<std::uint32_t>(value), two ? before.index : 0, 0};
    std::uint16_t others[2] = {i.in[1 - value], 0};
    if (two && is_product(i, static_cast<std::uint32_t>(1 - value))) {
      const Kernel::Instruction& product = *chain_before(i, static_cast<std::uint32_t>(1 - value));
      const bool swapped = chain_of(product).links[0].at == 1;
      others[0] = product.in[swapped ? 1 : 0];
      others[1] = product.in[swapped ? 0 : 1];
      link.factor = link.operand + 1;
      gone_[static_cast<std::size_t>(writer_[i.in[1 - value]])] = true;
    }
    to_.chains[static_cast<std::size_t>(before.chain)].links.push_back(link);
    for (std::uint32_t j = 0; j < before.index; ++j) i.in[j] = before.in[j];
    i.index = before.index;
    if (link.operand) i.in[i.index++] = others[0];
    if (link.factor) i.in[i.index++] = others[1];
    i.step = Kernel::Step::chain;
    i.chain = before.chain;
    i.op = nullptr;
    i.block = nullptr;
    gone_[static_cast<std::size_t>(writer)] = true;
  }

  Kernel::Program to_;
  const Kernel::Slots& slots_;
  std::vector<int> reads_;   ///< by slot: how often it is read, by whatever instruction
  std::vector<int> writer_;  ///< by slot: the instruction of the chain that writes it
  std::vector<char> gone_;
};

/// Joins cheap operations, each of which reads the result of the one before, to one instruction.
Kernel::Program with_chains(Kernel::Program program, const Kernel::Slots& slots) {
  return Chaining(std::move(program), slots).run();
}

/// Returns the distance from the end of a row of a slot to the next row.
std::ptrdiff_t skip_of(const PlacedSlots& placed, std::uint16_t s, std::int64_t length) {
  const Kernel::SlotInfo& slot = placed.slots[s];
  if (slot.kind != Kernel::Slot::rows) return 0;
  return (slot.output ? placed.memory.stores[slot.index].strides : placed.memory.loads[slot.index].strides)[-2] -
         length;
}

/// Resolves a chain's instruction and its code.
void resolve(Kernel::Instruction& i, Kernel::Chain& c, const PlacedSlots& placed, const Kernel::Tiling& tiling) {
  const auto is = [&](std::uint32_t j, Kernel::Slot kind) { return placed.slots[i.in[j]].kind == kind; };
  c.by_rows = placed.slots[i.slot].kind == Kernel::Slot::rows;
  for (std::uint32_t j = 0; j < i.index; ++j) c.by_rows |= is(j, Kernel::Slot::rows);
  const bool in_memory = tiling.in_memory && placed.slots[i.slot].output;
  if (c.links.size() == 1 && !c.by_rows && !in_memory) {  // its own loop is as good
    if (c.links[0].at == 1) std::swap(i.in[0], i.in[1]);
    i.step = Kernel::Step::apply;
    return;
  }
  const auto add = [&](const LinkKernel* kernel, std::uint16_t slot, std::uint16_t slot2) {
    c.stages.push_back(
        {kernel, slot, slot2, skip_of(placed, slot, tiling.length), skip_of(placed, slot2, tiling.length)});
  };
  add(link_from(is(0, Kernel::Slot::repeated)), i.in[0], i.in[0]);
  for (const Kernel::Chain::Operation& o : c.links) {
    const bool repeated = is(o.operand, Kernel::Slot::repeated), repeated2 = is(o.factor, Kernel::Slot::repeated);
    add(o.factor ? link_through_product(*o.op, o.at, repeated, repeated2) : link_through(*o.op, o.at, repeated),
        i.in[o.operand], i.in[o.factor]);
  }
  add(link_to(in_memory), i.slot, i.slot);
}

/// Gives chains their code, and operations the strides of their operands.
Kernel::Program resolve_program(Kernel::Program program, const PlacedSlots& placed, const Kernel::Tiling& tiling) {
  for (Kernel::Instruction& i : program.instructions) {
    if (i.step == Kernel::Step::chain) resolve(i, program.chains[static_cast<std::size_t>(i.chain)], placed, tiling);
    if (i.step != Kernel::Step::apply) continue;
    for (std::uint32_t j = 0; j < i.index; ++j) i.run[j] = placed.slots[i.in[j]].kind == Kernel::Slot::repeated ? 0 : 1;
  }
  return program;
}

// ---- axes: merged where everything that is read and written allows it -------------------------------------

using Axes = Kernel::Axes;
using Memory = Kernel::Memory;

void each_strides(Memory& m, const auto& f) {
  for (Kernel::Load& l : m.loads) f(l.strides, l.of_rows);
  for (Kernel::Store& s : m.stores) f(s.strides, s.of_rows);
}
void each_box(Memory& m, const auto& f) {
  for (Kernel::Load& l : m.loads) f(l.box, l.of_rows);
  for (Kernel::Filling& x : m.fillings) f(x.box, x.of_rows);
}

void erase_axis(Axes& a, Memory& m, int k) {
  a.extents.erase(k);
  if (k < a.outer) --a.outer;
  each_strides(m, [&](Shape& strides, bool) { strides.erase(k); });
  each_box(m, [&](Box& b, bool) {
    b.begin.erase(k);
    b.end.erase(k);
  });
}

/// Drops axes of extent 1, which move nothing unless a box is empty there.
void drop_single_axes(Axes& a, Memory& m) {
  for (int k = a.extents.rank() - 1; k >= 0; --k) {
    bool single = a.extents[k] == 1;
    each_box(m, [&](const Box& b, bool) { single = single && b.end[k] == 1; });
    if (single) erase_axis(a, m, k);
  }
  if (a.extents.rank()) return;
  a.extents = {1};
  for (Kernel::Load& l : m.loads) l.strides = {0};
  for (Kernel::Store& s : m.stores) s.strides = {1};
  each_box(m, [&](Box& b, bool) { b = {{0}, {1}}; });
}

bool can_merge(const Axes& a, Memory& m, int k) {
  if (a.reduces() && k + 1 == a.outer) return false;
  const std::int64_t inner = a.extents[k + 1];
  bool can = true;
  each_strides(m, [&](const Shape& strides, bool) { can = can && strides[k] == strides[k + 1] * inner; });
  each_box(m, [&](const Box& b, bool) { can = can && b.begin[k + 1] == 0 && b.end[k + 1] == inner; });
  return can;
}

/// Keeps the outer axes of a value with one element for each row, and adds a last axis.
void keep_outer(Shape& s, int outer, std::int64_t last) {
  while (s.rank() > outer) s.erase(outer);
  s.push_back(last);
}

/// Merges axes, and gives values with one element for each row the axes of rows.
MergedAxes merge_axes(Axes a, Memory m) {
  drop_single_axes(a, m);
  for (int k = a.extents.rank() - 2; k >= 0; --k) {
    if (!can_merge(a, m, k)) continue;
    const std::int64_t inner = a.extents[k + 1];
    each_strides(m, [&](Shape& strides, bool) { strides[k] = strides[k + 1]; });
    each_box(m, [&](Box& b, bool) {
      b.begin[k] *= inner;
      b.end[k] *= inner;
    });
    a.extents[k] *= inner;
    erase_axis(a, m, k + 1);
  }
  if (a.reduced) {
    a.row_extents = a.extents;
    keep_outer(a.row_extents, a.outer, 1);
    each_strides(m, [&](Shape& strides, bool of_rows) {
      if (of_rows) keep_outer(strides, a.outer, 0);
    });
    each_box(m, [&](Box& b, bool of_rows) {
      if (!of_rows) return;
      bool empty = false;  // an empty box stays empty, whichever axis makes it so
      for (int k = 0; k < b.begin.rank(); ++k) empty |= b.begin[k] >= b.end[k];
      keep_outer(b.begin, a.outer, 0);
      keep_outer(b.end, a.outer, empty ? 0 : 1);
    });
  }
  return {std::move(a), std::move(m)};
}

// ---- the size of a tile -----------------------------------------------------------------------------------

constexpr std::int64_t kFarBytes = 8 << 20;  ///< more bytes of operands arrive more slowly than they are used
constexpr std::int64_t kFarTile = 128;       ///< elements of each operand: so few that the hardware prefetches all runs
constexpr std::int64_t kOneStepTile = 4096;  ///< elements, if no value is kept from step to step
constexpr std::int64_t kScratchBytes = 24 << 10;  ///< all slots of a tile together: half of a first-level cache

/// Returns the number of operands that are read from memory in long runs; 0 if they fit into the caches.
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

/// Returns whether all loads read adjacent elements or repeat one, so that tiles cost little compared with their
/// elements.
bool read_in_runs(const Kernel::Memory& m) {
  return std::ranges::all_of(m.loads, [](const Kernel::Load& l) { return l.strides[-1] == 0 || l.strides[-1] == 1; });
}

/// Makes the tiles of a reducing kernel hold whole rows.
void take_whole_rows(Kernel::Tiling& t, const Kernel::Axes& a) {
  t.tile = std::clamp<std::int64_t>(t.tile / a.reduced, 1, t.elements() / a.reduced) * a.reduced;
  t.tile_rows = t.tile / t.length;
}

/// Makes tiles end where blocks of the reduction end: a block of elements for rows, a block of rows for columns.
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

/// Makes tiles of whole rows if several fit, otherwise of pieces of one row.
void fit_rows(Kernel::Tiling& t, const Kernel::Axes& a) {
  if (t.length > t.tile || t.rows == 1) {
    t.tile_rows = 0;
    t.pieces = (t.length + t.tile - 1) / t.tile;
    return;
  }
  const std::int64_t fit = t.tile / t.length;
  const std::int64_t even = 16 / std::gcd(t.length, std::int64_t{16});  // this many rows end on a cache line
  t.tile_rows = std::min(t.rows, fit >= even ? fit / even * even : fit);
  if (a.extents.rank() < 2 || t.tile_rows == t.rows) return;
  // Takes a little fewer rows if these divide the axis: values repeated along the axes before are then read in place.
  for (std::int64_t fewer = t.tile_rows; fewer > 0 && 2 * fewer > t.tile_rows; fewer -= std::min(even, fewer))
    if (a.extents[-2] % fewer == 0) {
      t.tile_rows = fewer;
      return;
    }
}

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
  if (steps == 1 && !a.reduced) t.tile = kOneStepTile;
  if (a.reduced) {
    take_whole_rows(t, a);
  } else if (a.across != Across::none) {
    end_with_blocks(t, a);
  } else {
    const std::int64_t streams = streams_from_afar(t, merged.memory);
    t.far = streams > 0;
    t.in_memory = streams > 1 && steps == 1 && t.elements() * slots.widest(1) > kStreamBytes;
    if (t.far && steps > 1) t.tile = (streams == 1 ? 4 : read_in_runs(merged.memory) ? 1 : 2) * kFarTile;
    fit_rows(t, a);
  }
  return t;
}

// ---- where the elements of slots are: in a buffer, in a line of one value, in scratch memory ------------------

using Slot = Kernel::Slot;
using Step = Kernel::Step;

constexpr std::int64_t kRowBytes = 128;  ///< minimum bytes of a row that chains read in place

bool all_zero(const Shape& strides) {
  return std::ranges::all_of(strides, [](std::int64_t s) { return s == 0; });
}

/// Gives slots their kinds, instruction by instruction.
class Placing {
 public:
  Placing(MergedAxes merged, Kernel::Slots slots, const Kernel::Tiling& tiling, const Kernel::Program& program)
      : axes_(std::move(merged.axes)),
        tiling_(tiling),
        program_(program.instructions),
        to_{std::move(merged.memory), std::move(slots)} {}

  PlacedSlots run() {
    std::vector<char> written(to_.slots.all.size());  // by an operation or a filling: a store may give it its place
    for (const Kernel::Instruction& i : program_) {
      if (i.step == Step::apply || i.step == Step::chain || i.step == Step::fill || i.step == Step::spread)
        written[i.slot] = true;
      if (i.step == Step::load) place_load(i);
      if (i.step == Step::store) place_store(i, written[i.slot]);
    }
    for (std::size_t s = 0; s < to_.slots.all.size(); ++s)
      if (to_.slots[s].kind == Slot::direct || to_.slots[s].kind == Slot::rows)
        to_.slots.directs.push_back(static_cast<std::uint16_t>(s));
    return std::move(to_);
  }

 private:
  void place_load(const Kernel::Instruction& i) {
    Kernel::Load& l = to_.memory.loads[i.index];
    Kernel::SlotInfo& slot = to_.slots[i.slot];
    l.whole = is_whole(l.box, axes_.of(l.of_rows));
    if (!l.whole) return;
    if (all_zero(l.strides) && !is_stored(i.slot)) {
      slot.kind = Slot::repeated;
      slot.index = static_cast<std::uint32_t>(to_.slots.literals.size() + to_.slots.repeated_loads.size());
      to_.slots.repeated_loads.push_back({i.index, static_cast<std::uint32_t>(l.bytes), l.from});
      return;
    }
    if (l.of_rows) return;
    const bool cut_rows = tiling_.tile_rows == 0 && l.strides[-1] == 1;
    const bool direct = is_dense(l.strides, false) || cut_rows || is_dense_in_tiles(l.strides);
    if (direct || (has_long_rows(l.strides, l.bytes) && is_of_chains_alone(i.slot))) {
      slot.kind = direct ? Slot::direct : Slot::rows;
      slot.index = i.index;
      return;
    }
    l.by_row = tiling_.tile_rows == 0 && l.strides[-1] == 0;
    l.once = tiling_.tile_rows > 0;
    for (int k = 0; k + 1 < axes_.extents.rank(); ++k) l.once &= l.strides[k] == 0;
  }

  void place_store(const Kernel::Instruction& i, bool written) {
    Kernel::Store& s = to_.memory.stores[i.index];
    Kernel::SlotInfo& slot = to_.slots[i.slot];
    s.dense = is_dense(s.strides, s.of_rows);
    if (s.of_rows || !written || slot.kind != Slot::scratch) return;
    if (!s.dense && !(has_long_rows(s.strides, s.bytes) && is_of_chains_alone(i.slot))) return;
    slot.kind = s.dense ? Slot::direct : Slot::rows;
    slot.output = true;
    slot.index = i.index;
  }

  bool is_dense(const Shape& strides, bool of_rows) const {
    const Shape& extents = axes_.of(of_rows);
    const Shape wanted = extents.strides();
    for (int k = 0; k < wanted.rank(); ++k)
      if (strides[k] != wanted[k] && extents[k] != 1) return false;
    return true;
  }
  /// Returns whether tiles are whole rows of several axes.
  bool tiles_are_rows() const { return !axes_.reduces() && axes_.extents.rank() >= 2 && tiling_.tile_rows != 0; }
  /// Returns whether the rows of every tile are adjacent, though those of different tiles may be the same.
  bool is_dense_in_tiles(const Shape& strides) const {
    return tiles_are_rows() && strides[-1] == 1 && strides[-2] == tiling_.length &&
           axes_.extents[-2] % tiling_.tile_rows == 0;
  }
  /// Returns whether chains may work on the rows in place: they consist of whole lines, evenly spaced in every tile.
  bool has_long_rows(const Shape& strides, std::int64_t bytes) const {
    if (!tiles_are_rows()) return false;
    const bool even = axes_.extents.rank() == 2 || axes_.extents[-2] % tiling_.tile_rows == 0;
    return even && bytes == 4 && strides[-1] == 1 && tiling_.length * bytes % kRowBytes == 0;
  }

  /// Returns whether only chains read a slot, or write it before a store reads it.
  bool is_of_chains_alone(std::uint16_t slot) const {
    int stores = 0;
    bool loaded = false, read = false;
    for (const Kernel::Instruction& i : program_) {
      if (i.step == Step::store) {
        stores += i.slot == slot;
      } else if (i.step == Step::chain) {
        read |= i.reads_slot(slot);
      } else if (i.step == Step::load) {
        loaded |= i.slot == slot;
      } else if (i.slot == slot || i.reads_slot(slot)) {
        return false;
      }
    }
    return loaded ? stores == 0 : stores == 1 && !read;
  }

  /// Returns whether a slot is read as it is, not by an operation: then it must be a run.
  bool is_stored(std::uint16_t slot) const {
    return std::ranges::any_of(program_, [&](const Kernel::Instruction& i) {
      return i.step != Step::apply && i.step != Step::chain && i.reads_slot(slot);
    });
  }

  const Kernel::Axes axes_;
  const Kernel::Tiling& tiling_;
  const std::vector<Kernel::Instruction>& program_;
  PlacedSlots to_;
};

PlacedSlots place_slots(MergedAxes merged, Kernel::Slots slots, const Kernel::Tiling& tiling,
                        const Kernel::Program& program) {
  return Placing(std::move(merged), std::move(slots), tiling, program).run();
}

/// Gives slots pieces of scratch memory, which are reused after the last read of their contents.
Kernel::Slots assign_scratch(Kernel::Slots slots, const Kernel::Memory& memory, const Kernel::Tiling& tiling,
                             const Kernel::Program& program) {
  const auto each_read = [](const Kernel::Instruction& i, const auto& f) {
    for (std::uint32_t j = 0; j < i.reads(); ++j) f(i.in[j]);
    if (i.step == Step::store) f(i.slot);
  };
  const auto stays = [&](const Kernel::Instruction& i) {
    return i.step == Step::load && (memory.loads[i.index].once || memory.loads[i.index].by_row);
  };
  constexpr std::size_t kAlways = ~std::size_t{0};
  std::vector<std::size_t> last(slots.all.size());  // by slot: the last instruction that reads it
  for (std::size_t t = 0; t < program.instructions.size(); ++t) {
    const Kernel::Instruction& i = program.instructions[t];
    each_read(i, [&](std::uint16_t s) {
      if (last[s] != kAlways) last[s] = t;
    });
    // A slot loaded once lives through all tiles; the slot of a total is read when the tile is done.
    if (i.step == Step::across || stays(i)) last[i.slot] = kAlways;
  }
  std::vector<std::int64_t> free;
  for (std::size_t t = 0; t < program.instructions.size(); ++t) {
    const Kernel::Instruction& i = program.instructions[t];
    Kernel::SlotInfo& slot = slots[i.slot];
    const bool owns = slot.kind == Slot::scratch || (slot.kind == Slot::direct && slot.output);
    if (i.step != Step::store && owns && slot.scratch < 0) {
      const bool own = free.empty() || stays(i);
      slot.scratch = own ? slots.scratch_pieces++ : free.back();
      if (!own) free.pop_back();
    }
    each_read(i, [&](std::uint16_t s) {
      if (last[s] != t || slots[s].scratch < 0) return;
      last[s] = kAlways;  // already returned
      free.push_back(slots[s].scratch);
    });
  }
  slots.piece_bytes = (tiling.tile * slots.widest(4) + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;
  return slots;
}

// ---- the program as written -------------------------------------------------------------------------------

constexpr std::int64_t kFewForChains = 32;  ///< up to this many elements, beginning a chain costs more than it saves

RepeatedLine repeated_line(const Scalar& s, Dtype dtype) {
  RepeatedLine line;
  visit_dtype(dtype, [&](auto zero) {
    const auto v = s.as<decltype(zero)>();
    for (std::int64_t at = 0; at < kLineBytes; at += static_cast<std::int64_t>(sizeof v))
      std::memcpy(line.bytes + at, &v, sizeof v);
  });
  return line;
}

/// Returns the expressions in order: copies come at the position of their node, after what they read.
std::vector<std::size_t> in_order(const Group& group) {
  std::vector<std::size_t> order(group.expressions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t e) { return group.expressions[e].order; });
  return order;
}

/// Returns the number of the domain's first axes that form one kind: the reduced axes before those that stay, or the
/// reverse.
int across_axes(const Group& group) {
  const Shape& extents = group.domain.extents();
  std::int64_t first =
      group.across == Across::columns ? group.across_elements : extents.numel() / group.across_elements;
  int k = 0;
  for (; first > 1; ++k) first /= extents[k];
  return k;
}

Kernel::Axes axes_of(const Group& group) {
  const Domain& domain = group.domain;
  return {.extents = domain.extents(),
          .row_extents = {},
          .outer = group.across == Across::none ? domain.outer() : across_axes(group),
          .reduced = domain.has_rows() ? domain.row_elements() : 0,
          .across = group.across,
          .across_elements = group.across_elements};
}

const Reduction& kind_of(const Primitive& op) {
  if (&op == ops::sum) return sum_in_use;
  if (&op == ops::prod) return prod_in_use;
  return &op == ops::amax ? max_in_use : min_in_use;
}

/// Returns the strides along the domain's axes, and the offset, of a map's elements in a buffer with these strides.
Layout layout_through(const IndexMap& map, const Shape& strides) {
  Layout layout;
  for (int a = 0; a < map.shape.rank(); ++a) layout.offset += map.offset[a] * strides[a];
  for (int k = 0; k < map.axis.rank(); ++k)
    layout.strides.push_back(map.axis[k] < 0 ? 0 : map.coefficient[k] * strides[static_cast<int>(map.axis[k])]);
  return layout;
}

/// Returns the number of paddings that the load performs: 1 for a padded value in memory, else 0.
std::size_t filled_by_load(const GroupOperand& o) { return o.expression >= 0 || o.fills.empty() ? 0 : 1; }

bool same_load(const GroupOperand& a, const GroupOperand& b) {
  if (a.value != b.value || !(a.map == b.map) || !(a.region == b.region) || a.fills.empty() != b.fills.empty())
    return false;
  if (a.fills.empty()) return true;
  const Scalar &x = a.fills[0].value, &y = b.fills[0].value;
  return x == y && x.real() == y.real() && std::signbit(x.real()) == std::signbit(y.real());
}

/// Writes the program of a group, expression by expression.
class Writing {
 public:
  Writing(const Graph& g, const Group& group, std::span<const Window> windows)
      : g_(g), group_(group), windows_(windows) {}

  WrittenKernel run() {
    slot_of_.resize(group_.expressions.size());
    const std::vector<char> live = live_expressions(group_);
    for (const std::size_t e : in_order(group_))
      if (live[e]) write(e);
    to_.axes = axes_of(group_);
    return std::move(to_);
  }

 private:
  std::uint16_t new_slot(Dtype dtype, bool of_rows = false) {
    if (to_.slots.all.size() > std::numeric_limits<std::uint16_t>::max())  // instructions name slots by 16 bits
      throw Error(
          "plan: a fused kernel has more than 65536 operands and intermediates; use PlanOptions{.fuse = false}");
    to_.slots.all.push_back({.dtype = dtype, .bytes = size_of(dtype), .of_rows = of_rows});
    return static_cast<std::uint16_t>(to_.slots.all.size() - 1);
  }

  Kernel::Instruction& add(Kernel::Step step, std::uint16_t slot, std::size_t index = 0) {
    to_.nodes.push_back(nullptr);
    Kernel::Instruction& i = to_.program.instructions.emplace_back();
    i.step = step;
    i.slot = slot;
    i.index = static_cast<std::uint32_t>(index);
    return i;
  }

  Shape strides_of(ValueId v) const {
    return windows_[v].base == v ? windows_[v].strides : g_.values[v].shape.strides();
  }

  void write(std::size_t e) {
    const Expression& x = group_.expressions[e];
    Kernel::Instruction apply;
    apply.of_rows = x.of_rows;
    apply.index = static_cast<std::uint32_t>(x.operands.size());
    for (std::size_t j = 0; j < x.operands.size(); ++j) apply.in[j] = operand(x, x.operands[j]);
    if (x.reduces && group_.across != Across::none) return total(e, x, apply.in[0]);
    slot_of_[e] = x.node ? new_slot(x.dtype, x.of_rows) : apply.in[0];
    if (x.node) {
      apply.slot = slot_of_[e];
      if (x.reduces) {
        apply.step = Kernel::Step::reduce;
        apply.reduction = x.node->op->row_reduction(x.dtype);
      } else {
        apply.op = x.node->op;
        apply.block = block_of(g_, *x.node);
      }
      to_.program.instructions.push_back(apply);
      to_.nodes.push_back(x.node);
    }
    for (const GroupOutput& o : group_.outputs)
      if (static_cast<std::size_t>(o.expression) == e) store(x, o, slot_of_[e]);
  }

  void total(std::size_t e, const Expression& x, std::uint16_t slot) {
    Kernel::Total t{.slot = slot, .kind = &kind_of(*x.node->op), .dtype = x.dtype};
    t.rows = row_reduction(*t.kind, t.dtype);
    for (const GroupOutput& o : group_.outputs)
      if (static_cast<std::size_t>(o.expression) == e) t.to.base = o.value;
    Kernel::Instruction& i = add(Kernel::Step::across, slot);
    i.of_rows = x.of_rows;
    i.in[0] = slot;
    to_.nodes.back() = x.node;
    to_.memory.totals.push_back(t);
  }

  /// Returns the slot that an expression reads: one of rows if it works on rows.
  std::uint16_t operand(const Expression& x, const GroupOperand& o) {
    if (o.value == kNoValue) return literal(x, o);
    const bool of_rows = x.of_rows && !x.reduces;
    std::uint16_t slot = o.expression >= 0 ? slot_of_[static_cast<std::size_t>(o.expression)] : load(o, of_rows);
    if (!of_rows && to_.slots[slot].of_rows) slot = spread(slot);
    for (std::size_t f = filled_by_load(o); f < o.fills.size(); ++f)
      slot = fill(slot, o.fills[f], g_.values[o.value].dtype, of_rows);
    return slot;
  }

  std::uint16_t spread(std::uint16_t from) {
    for (const auto& [rows, full] : spread_)
      if (rows == from) return full;
    const std::uint16_t slot = new_slot(to_.slots[from].dtype);
    add(Kernel::Step::spread, slot).in[0] = from;
    spread_.emplace_back(from, slot);
    return slot;
  }

  /// Returns the slot of a literal, which has the dtype of the other operands.
  std::uint16_t literal(const Expression& x, const GroupOperand& o) {
    Dtype dtype = x.dtype;
    if (dtype == Dtype::boolean) dtype = g_.values[x.node->in[0]].dtype;
    const std::uint16_t slot = new_slot(dtype);
    to_.slots[slot].kind = Kernel::Slot::repeated;
    to_.slots[slot].index = static_cast<std::uint32_t>(to_.slots.literals.size());
    to_.slots.literals.push_back(repeated_line(o.literal, dtype));
    return slot;
  }

  std::uint16_t load(const GroupOperand& o, bool of_rows) {
    for (const Loaded& l : loaded_)
      if (l.of_rows == of_rows && same_load(*l.operand, o)) return l.slot;
    const Dtype dtype = g_.values[o.value].dtype;
    const Layout layout = layout_through(o.map, strides_of(o.value));
    Kernel::Load l{.from = {o.value, layout.offset * size_of(dtype)},
                   .strides = layout.strides,
                   .box = o.region,
                   .of_rows = of_rows,
                   .bytes = size_of(dtype),
                   .outside = repeated_line(filled_by_load(o) ? o.fills[0].value : Scalar(0), dtype)};
    const std::uint16_t slot = new_slot(dtype, of_rows);
    add(Kernel::Step::load, slot, to_.memory.loads.size()).of_rows = of_rows;
    to_.memory.loads.push_back(l);
    loaded_.push_back({&o, slot, of_rows});
    return slot;
  }

  std::uint16_t fill(std::uint16_t from, const Fill& f, Dtype dtype, bool of_rows) {
    const std::uint16_t slot = new_slot(dtype, of_rows);
    Kernel::Instruction& i = add(Kernel::Step::fill, slot, to_.memory.fillings.size());
    i.of_rows = of_rows;
    i.in[0] = from;
    to_.memory.fillings.push_back({f.box, size_of(dtype), of_rows, repeated_line(f.value, dtype)});
    return slot;
  }

  void store(const Expression& x, const GroupOutput& o, std::uint16_t slot) {
    Kernel::Store s;
    s.bytes = size_of(x.dtype);
    s.to.base = o.value;
    s.window = o.window;
    s.of_rows = x.of_rows;
    if (o.window) s.to.offset += o.layout.offset * s.bytes;
    s.strides = layout_through(x.map, o.window ? o.layout.strides : strides_of(o.value)).strides;
    add(Kernel::Step::store, slot, to_.memory.stores.size()).of_rows = x.of_rows;
    to_.memory.stores.push_back(s);
  }

  struct Loaded {
    const GroupOperand* operand;
    std::uint16_t slot;
    bool of_rows;
  };

  const Graph& g_;
  const Group& group_;
  std::span<const Window> windows_;  ///< by value
  WrittenKernel to_;
  std::vector<std::uint16_t> slot_of_;  ///< by expression: its slot
  std::vector<Loaded> loaded_;
  std::vector<std::pair<std::uint16_t, std::uint16_t>> spread_;  ///< slot of rows, slot of all elements
};

}  // namespace

namespace {

/// Returns whether the tiles of a kernel differ only in their place: no element is filled in, reduced or stored twice,
/// and the only gathered ones are repeated for a whole row.
bool is_straight(const Kernel& k) {
  if (k.axes.reduces() || k.tiling.tile_rows != 0) return false;
  return std::ranges::all_of(k.program.instructions, [&](const Kernel::Instruction& i) {
    const Kernel::SlotInfo& slot = k.slots[i.slot];
    if (i.of_rows) return false;
    if (i.step == Step::load) return slot.kind != Slot::scratch || k.memory.loads[i.index].by_row;
    if (i.step == Step::store) return slot.kind == Slot::direct && slot.output && slot.index == i.index;
    return i.step == Step::apply || i.step == Step::chain;
  });
}

}  // namespace

WrittenKernel write_kernel(const Graph& g, const Group& group, std::span<const Window> windows) {
  WrittenKernel written = Writing(g, group, windows).run();
  MergedAxes merged = merge_axes(std::move(written.axes), std::move(written.memory));
  written.axes = std::move(merged.axes), written.memory = std::move(merged.memory);
  return written;
}

Kernel build_kernel(const Graph& g, const Group& group, std::span<const Window> windows) {
  WrittenKernel written = Writing(g, group, windows).run();
  if (written.axes.extents.numel() > kFewForChains)
    written.program = with_chains(std::move(written.program), written.slots);
  MergedAxes merged = merge_axes(std::move(written.axes), std::move(written.memory));
  Kernel k;
  k.axes = merged.axes;
  k.tiling = choose_tiles(merged, written.slots, written.program);
  PlacedSlots placed = place_slots(std::move(merged), std::move(written.slots), k.tiling, written.program);
  k.program = resolve_program(std::move(written.program), placed, k.tiling);
  k.slots = assign_scratch(std::move(placed.slots), placed.memory, k.tiling, k.program);
  k.memory = std::move(placed.memory);
  k.tiling.straight = is_straight(k);
  return k;
}

}  // namespace ferrite::detail
