/// Products that run with the group that reads them.
#include <algorithm>

#include "ferrite/compile/fuse/detail/fused_schedule.h"
#include "ferrite/compile/fuse/products.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {
namespace {

/// Whether a group reads a matrix so that points of its domain, in order, meet the rows in order: then rows of the
/// matrix may be computed just before they are read.
bool runs_along_rows(const IndexMap& map, const Shape& extents) {
  const int last = map.shape.rank() - 1;
  std::int64_t rows = 1;
  Shape steps = Shape::filled(last, 1);  // rows that one step along an axis passes
  for (int a = last - 1; a >= 0; --a) {
    if (map.offset[a] != 0) return false;
    steps[a] = rows;
    rows *= map.shape[a];
  }
  int k = 0;
  for (; k < extents.rank() && rows > 1; ++k) {
    if (extents[k] == 1) continue;
    if (rows % extents[k] != 0 || map.axis[k] < 0 || map.axis[k] == last) return false;
    rows /= extents[k];
    if (map.coefficient[k] * steps[static_cast<int>(map.axis[k])] != rows) return false;
  }
  for (; k < extents.rank(); ++k)
    if (extents[k] > 1 && map.axis[k] >= 0 && map.axis[k] != last) return false;
  return rows == 1;
}

bool reads_along_rows(const Groups& groups, ValueId v, std::size_t at) {
  const std::vector<Groups::Use>& uses = groups.uses(v);
  return std::all_of(uses.begin(), uses.end(), [&](const Groups::Use& u) {
    return runs_along_rows(groups.operand(u).map, groups[at].domain.extents());
  });
}

/// The group that alone reads a value from memory; kNoNode where there is none.
std::size_t only_reader(const Groups& groups, ValueId v) {
  const std::vector<Groups::Use>& uses = groups.uses(v);
  if (groups.is_stored(v) || uses.empty()) return kNoNode;
  const bool one =
      std::all_of(uses.begin(), uses.end(), [&](const Groups::Use& u) { return u.group == uses[0].group; });
  return one ? uses[0].group : kNoNode;
}

/// Whether a product may wait until a later task at no cost: its operands live that long in any case, or nothing else
/// runs between.
bool delays_nothing(const Groups& groups, const std::vector<Task>& tasks, std::size_t from, std::size_t to) {
  const std::vector<Graph::Node>& nodes = groups.view().graph().nodes;
  const Graph::Node& n = nodes[tasks[from].position];
  const bool given = std::all_of(
      n.in.begin(), n.in.end(), [&](ValueId v) { return groups.view().producer(groups.windows()[v].base) == kNoNode; });
  if (given) return true;
  for (std::size_t t = from + 1; t < to; ++t)
    if (tasks[t].group >= 0 || !is_product(*nodes[tasks[t].position].op)) return false;
  return true;
}

}  // namespace

Schedule with_products(const Groups& groups, Schedule schedule) {
  std::vector<Task>& tasks = schedule.tasks;
  std::vector<std::size_t> task_of(groups.size(), kNoNode);
  for (std::size_t t = 0; t < tasks.size(); ++t)
    if (tasks[t].group >= 0) task_of[static_cast<std::size_t>(tasks[t].group)] = t;
  std::vector<char> attached(tasks.size());
  for (std::size_t t = tasks.size(); t-- > 0;) {
    const Graph::Node& n = groups.view().graph().nodes[tasks[t].position];
    if (tasks[t].group >= 0 || n.op != ops::matmul) continue;
    const ValueId v = n.out[0];
    const std::size_t group = only_reader(groups, v);
    if (group == kNoNode || task_of[group] == kNoNode) continue;
    const bool along_rows = reads_along_rows(groups, v, group);
    if (!along_rows || !delays_nothing(groups, tasks, t, task_of[group])) {
      schedule.refusals.push_back(refusal(groups.view(), v,
                                          along_rows ? "its operands would live until the kernel that reads it"
                                                     : "the kernel that reads it does not run along its rows"));
      continue;
    }
    tasks[task_of[group]].products.push_back(tasks[t].position);
    attached[t] = true;
  }
  std::size_t t = 0;
  std::erase_if(tasks, [&](const Task&) { return attached[t++] != 0; });
  return schedule;
}

}  // namespace ferrite::detail
