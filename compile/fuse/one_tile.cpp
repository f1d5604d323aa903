/// Kernels of one tile whose operands and results all lie in its order: nothing is looked up while they run. The steps
/// of scans over a few numbers consist of them.
#include <cstring>

#include "ferrite/compile/fuse/kernel.h"
#include "ferrite/tensor/kernel/scratch.h"

namespace ferrite::detail {
namespace {

using Step = Kernel::Step;
using Slot = Kernel::Slot;
using OneTile = Kernel::OneTile;

bool is_one_tile(const Kernel& k) {
  if (k.axes.reduces() || k.tiling.tiles() != 1 || k.tiling.in_memory) return false;
  for (const Kernel::Instruction& i : k.program.instructions) {
    const Slot kind = k.slots[i.slot].kind;
    if (i.step == Step::load && kind == Slot::scratch) return false;
    if (i.step == Step::store && !k.memory.stores[i.index].dense) return false;
    if (i.step == Step::chain && k.program.chains[static_cast<std::size_t>(i.chain)].by_rows) return false;
    if (i.step != Step::load && i.step != Step::store && i.step != Step::apply && i.step != Step::chain) return false;
  }
  return true;
}

/// Returns whether a result is written in place: whole lines are written, beyond its end if nothing follows in the
/// buffer.
bool in_place(const Kernel& k, const Kernel::Store& s) {
  return !s.window || k.tiling.elements() * s.bytes % kLineBytes == 0;
}

Place spot_of(const Kernel& k, const Kernel::SlotInfo& s, bool fills_lines) {
  const Place scratch{OneTile::kScratch, s.scratch * k.slots.piece_bytes};
  if (s.kind == Slot::repeated) {
    if (s.index < k.slots.literals.size()) return {OneTile::kLiteral, s.index * kLineBytes};
    const std::size_t line = s.index - k.slots.literals.size();
    if (fills_lines) return {OneTile::kLine, static_cast<std::int64_t>(line) * kLineBytes};
    return k.slots.repeated_loads[line].from;
  }
  if (s.kind == Slot::scratch) return scratch;
  if (!s.output) return k.memory.loads[s.index].from;
  return in_place(k, k.memory.stores[s.index]) ? k.memory.stores[s.index].to : scratch;
}

bool same(const Place& a, const Place& b) { return a.base == b.base && a.offset == b.offset; }

}  // namespace

void Kernel::settle() {
  if (!is_one_tile(*this)) return;
  one_tile.fills_lines = !program.chains.empty();
  for (const SlotInfo& s : slots.all) one_tile.spots.push_back(spot_of(*this, s, one_tile.fills_lines));
  for (const Instruction& i : program.instructions) {
    if (i.step == Step::load) continue;
    if (i.step == Step::store && same(one_tile.spots[i.slot], memory.stores[i.index].to)) continue;
    one_tile.instructions.push_back(i);
  }
  one_tile.bytes = static_cast<std::size_t>(slots.scratch_pieces * slots.piece_bytes) +
                   slots.repeated_loads.size() * kLineBytes + slots.all.size() * sizeof(std::byte*);
}

void Kernel::run_one_tile(std::byte* const* bases) const {
  std::byte* const scratch = kernel_memory().tiles.take(one_tile.bytes);
  std::byte* const lines = scratch + slots.scratch_pieces * slots.piece_bytes;
  auto** const at = reinterpret_cast<std::byte**>(lines + slots.repeated_loads.size() * kLineBytes);
  if (one_tile.fills_lines) {
    std::byte* to = lines;
    for (const RepeatedLoad& l : slots.repeated_loads) {
      repeat_over_line(bases[l.from.base] + l.from.offset, l.bytes, to);
      to += kLineBytes;
    }
  }
  // Literals are only read.
  auto* const literals = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(slots.literals.data()));
  std::byte** to = at;
  for (const Place& p : one_tile.spots) {
    std::byte* const base = p.base < OneTile::kLine       ? bases[p.base]
                            : p.base == OneTile::kScratch ? scratch
                            : p.base == OneTile::kLiteral ? literals
                                                          : lines;
    *to++ = base + p.offset;
  }
  const std::int64_t n = tiling.elements();
  for (const Instruction& i : one_tile.instructions) {
    if (i.step == Step::apply) [[likely]] {
      const void* in[3] = {at[i.in[0]], at[i.in[1]], at[i.in[2]]};
      i.block(in, i.run, at[i.slot], n);
    } else if (i.step == Step::chain) {
      Link links[kMostLinks + 2];
      write_links(*this, program.chains[static_cast<std::size_t>(i.chain)], at, 0, links);
      run_chain(links, {0, 1, n});
    } else {
      const Store& s = memory.stores[i.index];
      std::memmove(bases[s.to.base] + s.to.offset, at[i.slot], static_cast<std::size_t>(n * s.bytes));
    }
  }
}

}  // namespace ferrite::detail
