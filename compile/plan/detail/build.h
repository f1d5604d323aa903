#pragma once
/// How a plan is made, stage by stage: each is a function of what the stages before it gave. Until addresses are known
/// the base of a place is the number of its value.
#include "ferrite/compile/graph/view.h"
#include "ferrite/compile/plan/body.h"

namespace ferrite::detail {

/// What runs, in the order of the tasks. With `blocks` products whose results would leave the caches before the kernel
/// reads them are computed some rows at a time, into the same place again and again.
PlannedProgram write_program(const Graph& g, const Fused& fused, bool blocks);

/// What a plan is given and gives, and the bases of values; 0: the arena, or none.
struct PlacedEnds {
  PlanEnds ends;
  std::vector<std::uint32_t> base;  ///< by value: of inputs, variables, constants, results
  std::vector<std::uint32_t>
      blocks;  ///< by value: of products computed in blocks, as the kernel that reads them sees them
};
PlacedEnds place_ends(const Graph& g, const PlannedProgram& program);

/// The first and the last step at which a value is in memory.
struct LiveRange {
  std::size_t first = kNoNode, last = 0;
};
std::vector<LiveRange> find_live_ranges(const Graph& g, const PlannedProgram& program);

/// Results that take the place of operands which end with the step that computes them.
struct Reuse {
  std::vector<ValueId> place_of;      ///< by value: whose place it takes; kNoValue: a place of its own
  std::vector<std::int64_t> updates;  ///< by result: the argument, a variable, whose buffer it may take; else -1

  /// The value whose place v has in the end.
  ValueId root(ValueId v) const {
    while (place_of[v] != kNoValue) v = place_of[v];
    return v;
  }
};
Reuse find_reuse(const Graph& g, const PlannedProgram& program, const PlacedEnds& placed,
                 const std::vector<LiveRange>& live, bool reuse);

}  // namespace ferrite::detail
