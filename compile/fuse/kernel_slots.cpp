/// Where each slot of a kernel has its elements: in a buffer as it stands, in a line of one value, in scratch memory.
#include <algorithm>

#include "ferrite/compile/fuse/detail/kernel_stages.h"

namespace ferrite::detail {
namespace {

using Slot = Kernel::Slot;
using Step = Kernel::Step;

constexpr std::int64_t kRowBytes = 128;  ///< rows of so many bytes chains read where they stand

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
      to_.slots.repeated_loads.push_back(i.index);
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
  /// Whether tiles are whole rows of several axes.
  bool tiles_are_rows() const { return !axes_.reduces() && axes_.extents.rank() >= 2 && tiling_.tile_rows != 0; }
  /// Whether the rows of every tile follow each other, though those of different tiles may be the same.
  bool is_dense_in_tiles(const Shape& strides) const {
    return tiles_are_rows() && strides[-1] == 1 && strides[-2] == tiling_.length &&
           axes_.extents[-2] % tiling_.tile_rows == 0;
  }
  /// Whether chains may work on the rows where they stand: of whole lines, and evenly spaced in every tile.
  bool has_long_rows(const Shape& strides, std::int64_t bytes) const {
    if (!tiles_are_rows()) return false;
    const bool even = axes_.extents.rank() == 2 || axes_.extents[-2] % tiling_.tile_rows == 0;
    return even && bytes == 4 && strides[-1] == 1 && tiling_.length * bytes % kRowBytes == 0;
  }

  /// Whether nothing but chains reads a slot, or writes it and a store takes it from there.
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

  /// Whether a slot is read as it is, not by an operation: then it must be a run.
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

}  // namespace

PlacedSlots place_slots(MergedAxes merged, Kernel::Slots slots, const Kernel::Tiling& tiling,
                        const Kernel::Program& program) {
  return Placing(std::move(merged), std::move(slots), tiling, program).run();
}

Kernel::Slots assign_scratch(Kernel::Slots slots, const Kernel::Memory& memory, const Kernel::Tiling& tiling,
                             const Kernel::Program& program) {
  const auto each_read = [](const Kernel::Instruction& i, const auto& f) {
    for (std::uint32_t j = 0; j < i.reads(); ++j) f(i.in[j]);
    if (i.step == Step::store) f(i.slot);
  };
  constexpr std::size_t kAlways = ~std::size_t{0};
  std::vector<std::size_t> last(slots.all.size());  // by slot: the last instruction that reads it
  for (std::size_t t = 0; t < program.instructions.size(); ++t) {
    const Kernel::Instruction& i = program.instructions[t];
    each_read(i, [&](std::uint16_t s) {
      if (last[s] != kAlways) last[s] = t;
    });
    // Loaded once, it lives through all tiles; of a total, it is read when the tile is done.
    if (i.step == Step::across || (i.step == Step::load && memory.loads[i.index].once)) last[i.slot] = kAlways;
  }
  std::vector<std::int64_t> free;
  for (std::size_t t = 0; t < program.instructions.size(); ++t) {
    const Kernel::Instruction& i = program.instructions[t];
    Kernel::SlotInfo& slot = slots[i.slot];
    const bool owns = slot.kind == Slot::scratch || (slot.kind == Slot::direct && slot.output);
    if (i.step != Step::store && owns && slot.scratch < 0) {
      const bool own = free.empty() || (i.step == Step::load && memory.loads[i.index].once);
      slot.scratch = own ? slots.scratch_pieces++ : free.back();
      if (!own) free.pop_back();
    }
    each_read(i, [&](std::uint16_t s) {
      if (last[s] != t || slots[s].scratch < 0) return;
      last[s] = kAlways;  // given back
      free.push_back(slots[s].scratch);
    });
  }
  slots.piece_bytes = (tiling.tile * slots.widest(4) + kLineBytes - 1) / kLineBytes * kLineBytes + kLineBytes;
  return slots;
}

}  // namespace ferrite::detail
