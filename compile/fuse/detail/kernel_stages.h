#pragma once
/// From a group to its kernel, stage by stage: each is a function of what the stages before it gave.
#include "ferrite/compile/fuse/kernel.h"

namespace ferrite::detail {

/// A group as written: in the axes of its domain, slots without places.
struct WrittenKernel {
  Kernel::Axes axes;
  Kernel::Memory memory;
  Kernel::Slots slots;
  Kernel::Program program;
};

/// Makes cheap operations of which one reads the other's result one instruction.
Kernel::Program with_chains(Kernel::Program program, const Kernel::Slots& slots);

/// Merges axes, and gives what has one element for each row the axes of rows.
struct MergedAxes {
  Kernel::Axes axes;
  Kernel::Memory memory;
};
MergedAxes merge_axes(Kernel::Axes axes, Kernel::Memory memory);

Kernel::Tiling choose_tiles(const MergedAxes& merged, const Kernel::Slots& slots, const Kernel::Program& program);

/// Which loads need no copy, which results are computed where they belong: every slot gets its kind.
struct PlacedSlots {
  Kernel::Memory memory;
  Kernel::Slots slots;
};
PlacedSlots place_slots(MergedAxes merged, Kernel::Slots slots, const Kernel::Tiling& tiling,
                        const Kernel::Program& program);

/// Gives chains their code, and operations the steps of their operands.
Kernel::Program resolve_program(Kernel::Program program, const PlacedSlots& placed, const Kernel::Tiling& tiling);

/// Gives slots pieces of scratch memory, which are used again after the last read of what is in them.
Kernel::Slots assign_scratch(Kernel::Slots slots, const Kernel::Memory& memory, const Kernel::Tiling& tiling,
                             const Kernel::Program& program);

}  // namespace ferrite::detail
