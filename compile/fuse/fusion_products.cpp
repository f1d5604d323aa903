#include <algorithm>

#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/fuse/products.h"
#include "ferrite/compile/graph/rewrite.h"

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

}  // namespace

/// A product that one group alone reads, row after row, runs with that group.
void Fuser::attach_products() {
  std::vector<std::size_t> task_of(out_.groups.size(), kNoNode);
  for (std::size_t t = 0; t < out_.tasks.size(); ++t)
    if (out_.tasks[t].group >= 0) task_of[static_cast<std::size_t>(out_.tasks[t].group)] = t;
  std::vector<char> attached(out_.tasks.size());
  for (std::size_t t = out_.tasks.size(); t-- > 0;) {
    const Task& task = out_.tasks[t];
    if (task.group >= 0 || g_.nodes[task.single].op != ops::matmul) continue;
    const ValueId v = g_.nodes[task.single].out[0];
    const std::size_t group = epilogue_of(v);
    if (group == kNoNode || task_of[group] == kNoNode) continue;
    if (!reads_rows_of(v, group)) {
      refuse(v, "the kernel that reads it does not run along its rows");
      continue;
    }
    if (!delays_nothing(t, task_of[group])) {
      refuse(v, "its operands would live until the kernel that reads it");
      continue;
    }
    out_.tasks[task_of[group]].products.push_back(task.single);
    attached[t] = true;
  }
  std::size_t t = 0;
  std::erase_if(out_.tasks, [&](const Task&) { return attached[t++] != 0; });
}

bool Fuser::reads_rows_of(ValueId v, std::size_t at) const {
  const Group& group = out_.groups[at];
  return std::all_of(uses_[v].begin(), uses_[v].end(), [&](const Use& u) {
    const GroupOperand& o = group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
    return runs_along_rows(o.map, group.domain.extents());
  });
}

/// The group that alone reads a value from memory.
std::size_t Fuser::epilogue_of(ValueId v) const {
  if (needed_[v] || first_reader_[v] != kNoNode || uses_[v].empty()) return kNoNode;
  const std::size_t group = uses_[v][0].group;
  for (const Use& u : uses_[v])
    if (u.group != group) return kNoNode;
  return group;
}

/// Whether a product may wait until a later task at no cost: its operands live that long in any case, or nothing else
/// runs between.
bool Fuser::delays_nothing(std::size_t from, std::size_t to) const {
  const Graph::Node& n = g_.nodes[out_.tasks[from].single];
  const bool given =
      std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return producer_[out_.windows[v].base] == kNoNode; });
  if (given) return true;
  for (std::size_t t = from + 1; t < to; ++t)
    if (out_.tasks[t].group >= 0 || !is_product(*g_.nodes[out_.tasks[t].single].op)) return false;
  return true;
}

}  // namespace ferrite::detail
