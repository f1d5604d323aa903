/// Rows that a reduction reduces inside a group: which there are, and how a group comes to have them.
#include <algorithm>

#include "ferrite/compile/fuse/detail/placement.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
namespace {

/// Rows longer than this would leave the caches before they are read again.
constexpr std::int64_t kMostRowElements = 4096;

}  // namespace

bool RowsOfReduction::fit() const { return last_axes && elements >= 2 && elements <= kMostRowElements; }

RowsOfReduction rows_of(const Graph& g, const Graph::Node& n) {
  const Spec& operand = g.values[n.in[0]];
  const Shape axes = n.attrs.as<ReductionAttrs>().axes;
  const int first = operand.shape.rank() - axes.rank();
  RowsOfReduction rows{true, n.op->row_reduction(operand.dtype) != nullptr, 1};
  for (int i = 0; i < axes.rank(); ++i) {
    rows.last_axes &= axes[i] == first + i;
    rows.elements *= operand.shape[first + i];
  }
  return rows;
}

std::vector<std::int64_t> find_rows(const Graph& g) {
  std::vector<std::int64_t> found(g.values.size());
  for (const Graph::Node& n : g.nodes) {
    if (n.in.empty() || n.out.size() != 1) continue;
    std::int64_t& rows = found[n.out[0]];
    if (n.op->row_reduction) {
      const RowsOfReduction of = rows_of(g, n);
      if (of.fit() && n.op->row_reduction(g.values[n.out[0]].dtype)) rows = of.elements;
    } else if (is_elementwise(*n.op) || n.op->view) {
      const std::int64_t results = g.values[n.out[0]].shape.numel();
      for (const ValueId v : n.in)
        if (g.values[v].shape.numel() == results) rows = std::max(rows, found[v]);
    }
  }
  return found;
}

std::optional<int> first_axis_of_rows(const Group& group, const IndexMap& map, std::int64_t elements) {
  const Shape& extents = group.domain.extents();
  if (group.across != Across::none) return {};
  int outer = extents.rank();
  std::int64_t unused = 1;
  while (outer > 0 && unused < elements && map.axis[outer - 1] < 0) unused *= extents[--outer];
  if (unused != elements || elements < 2 || !is_dense(map, extents, outer)) return {};
  return outer;
}

RowsInReader rows_in_reader(const Groups& groups, const Graph::Node& n, const Placement& at) {
  using How = RowsInReader::How;
  const Group& group = groups[at.group];
  const Domain& domain = group.domain;
  const RowsOfReduction rows = rows_of(groups.view().graph(), n);
  const auto no = [](const std::string& why) { return RowsInReader{How::not_at_all, 0, why}; };
  if (group.across != Across::none) return no("the kernel that reads it reduces other rows");
  if (!rows.same_dtype) return no("its result has another dtype than its operand");
  if (!rows.last_axes) return no("it reduces other axes than the last");
  if (!rows.fit()) return no("its rows have " + std::to_string(rows.elements) + " elements");
  if (groups.view().spec(n.out[0]).shape.rank() + domain.extents().rank() > Shape::kMaxRank) return no("too many axes");
  if (!is_whole(at.region, domain.extents())) return no("a padding covers a part of its rows");
  if (domain.has_rows()) {
    if (domain.row_elements() != rows.elements) return no("the kernel that reads it has rows of another length");
    if (!is_of_rows(at.map, domain) || !is_dense(at.map, domain.extents(), domain.outer()))
      return no("the kernel that reads it does not run in its order");
    return {How::as_they_are};
  }
  if (const std::optional<int> axis = first_axis_of_rows(group, at.map, rows.elements))
    return {How::declared, *axis, {}};
  // The group so far runs over the results: it becomes what is done with them, row by row.
  if (!is_dense(at.map, domain.extents(), domain.extents().rank()))
    return no("the kernel that reads it does not run in its order");
  for (const Expression& e : group.expressions)
    for (const GroupOperand& o : e.operands)
      if (!o.fills.empty()) return no("the kernel that reads it pads");
  for (const GroupOutput& o : group.outputs)
    if (o.window) return no("the kernel that reads it is a part of a concatenation");
  return {How::appended};
}

}  // namespace ferrite::detail
