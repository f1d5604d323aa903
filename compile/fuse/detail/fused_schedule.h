#pragma once
/// What follows when every node of a graph has its place: what groups write, and in which order everything runs.
#include "ferrite/compile/fuse/detail/groups.h"

namespace ferrite::detail {

/// Everything in its place.
struct Partition {
  Groups groups;
  std::vector<std::size_t> alone;  ///< nodes that run so, backwards
};

/// By group.
using Outputs = std::vector<std::vector<GroupOutput>>;

/// The outputs of groups. With `fuse` a part of a concatenation that an earlier group computes for nothing else is
/// written into the whole by that group: no copy.
Outputs outputs_in_place(const Groups& groups, bool fuse);

struct Schedule {
  std::vector<Task> tasks;
  std::vector<std::string> refusals;  ///< what was not fused, and why
};
/// The same with every product that one group alone reads, row after row, in that group's task.
Schedule with_products(const Groups& groups, Schedule schedule);

/// Why a value is not fused, as reports have it.
std::string refusal(const GraphView& view, ValueId v, const std::string& why);

}  // namespace ferrite::detail
