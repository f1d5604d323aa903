#include <algorithm>

#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
namespace {

/// Rows longer than this would leave the caches before they are read again.
constexpr std::int64_t kMostRowElements = 4096;

/// The shape of a reduction's operand without the axes that are reduced, and those, where they are the last ones.
bool trailing(const Shape& operand, const Shape& axes, Shape& kept, Shape& reduced) {
  const int first = operand.rank() - axes.rank();
  for (int i = 0; i < axes.rank(); ++i)
    if (axes[i] != first + i) return false;
  for (int i = 0; i < operand.rank(); ++i) (i < first ? kept : reduced).push_back(operand[i]);
  return true;
}

}  // namespace

/// Into the group that reads its result: rows of the group's domain are what is reduced.
void Fuser::visit_reduction(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  const ValueId v = n.out[0];
  if (!is_read(v) || is_empty(v)) return;
  Verdict verdict;
  if (!uses_[v].empty()) verdict = earliest_group(v);
  std::optional<IndexMap> map;
  if (verdict.group != kNoNode && reduces_rows(i, verdict)) map = map_of_rows(i, verdict);
  if (!map && new_rows(i, verdict)) map = map_of_rows(i, verdict);
  if (!map) return visit_across(i);
  const int at = static_cast<int>(out_.groups[verdict.group].expressions.size());
  join(i, v, verdict).reduces = true;
  add_operand(verdict.group, at, n.in[0], *map);
}

/// A group of its own, for what the reduction reads: false where it must run alone.
bool Fuser::new_rows(std::size_t i, Verdict& verdict) {
  const Graph::Node& n = g_.nodes[i];
  const Spec& operand = g_.values[n.in[0]];
  const Shape& results = g_.values[n.out[0]].shape;
  Shape kept, reduced;
  if (!n.op->row_reduction(operand.dtype) || !trailing(operand.shape, n.attrs.as<ReductionAttrs>().axes, kept, reduced))
    return false;
  const std::int64_t elements = reduced.numel();
  // Of many axes a map may need more than there are.
  if (elements < 2 || elements > kMostRowElements || results.rank() + operand.shape.rank() > Shape::kMaxRank)
    return false;
  verdict.group = new_group(i, results);
  Group& group = out_.groups[verdict.group];
  follow_cuts(group);
  group.domain.append({elements});
  verdict.map = group.root;
  verdict.region = whole_box(group.domain.extents());
  verdict.store = true;
  return true;
}

/// The operand of a reduction runs over all of the domain: the result's place on the outer axes, then the row.
std::optional<IndexMap> Fuser::map_of_rows(std::size_t i, Verdict& verdict) {
  Domain& domain = out_.groups[verdict.group].domain;
  IndexMap whole = verdict.map;
  for (int k = domain.outer(); k < domain.extents().rank(); ++k) {
    whole.axis[k] = whole.shape.rank();
    whole.coefficient[k] = 1;
    whole.shape.push_back(domain.extents()[k]);
    whole.offset.push_back(0);
  }
  follow_cuts(out_.groups[verdict.group]);
  domain.maps.push_back(&verdict.map);
  domain.boxes.push_back(&verdict.region);
  return through_reshape(domain, whole, g_.values[g_.nodes[i].in[0]].shape);
}

/// The rows that values were reduced from, as far as operations keep one element for each row.
void Fuser::find_rows() {
  if (!options_.fuse) return;
  for (const Graph::Node& n : g_.nodes) {
    if (n.in.empty() || n.out.size() != 1) continue;
    std::int64_t& rows = rows_behind_[n.out[0]];
    const std::int64_t results = g_.values[n.out[0]].shape.numel();
    Shape kept, reduced;
    if (n.op->row_reduction) {
      if (!trailing(g_.values[n.in[0]].shape, n.attrs.as<ReductionAttrs>().axes, kept, reduced)) continue;
      const std::int64_t elements = reduced.numel();
      if (elements >= 2 && elements <= kMostRowElements && n.op->row_reduction(g_.values[n.out[0]].dtype))
        rows = elements;
    } else if (is_elementwise(*n.op) || n.op->view) {
      for (const ValueId v : n.in)
        if (g_.values[v].shape.numel() == results) rows = std::max(rows, rows_behind_[v]);
    }
  }
}

/// Makes the last axes of a group's domain its rows, if they have so many elements and the map of a value that is read
/// there moves along the others only, in order.
bool Fuser::declare_rows(Group& group, const IndexMap& map, std::int64_t elements) {
  Domain& domain = group.domain;
  if (group.across != Across::none) return false;
  int outer = domain.extents().rank();
  std::int64_t unused = 1;
  while (outer > 0 && unused < elements && map.axis[outer - 1] < 0) unused *= domain.extents()[--outer];
  if (unused != elements || elements < 2 || !is_dense(map, domain.extents(), outer)) return false;
  domain.set_outer(outer);
  for (Expression& e : group.expressions) e.of_rows = is_of_rows(e.map, domain);
  return true;
}

/// Whether the rows of the group that reads a reduction are, or can be made, what it reduces.
bool Fuser::reduces_rows(std::size_t i, Verdict& verdict) {
  const Graph::Node& n = g_.nodes[i];
  const ValueId v = n.out[0];
  const Spec& operand = g_.values[n.in[0]];
  Group& group = out_.groups[verdict.group];
  Domain& domain = group.domain;
  Shape kept, reduced;
  const auto no = [&](const std::string& why) {
    refuse(v, why);
    return false;
  };
  if (group.across != Across::none) return no("the kernel that reads it reduces other rows");
  if (!n.op->row_reduction(operand.dtype)) return no("its result has another dtype than its operand");
  if (!trailing(operand.shape, n.attrs.as<ReductionAttrs>().axes, kept, reduced))
    return no("it reduces other axes than the last");
  const std::int64_t elements = reduced.numel();
  if (elements < 2 || elements > kMostRowElements) return no("its rows have " + std::to_string(elements) + " elements");
  if (g_.values[v].shape.rank() + domain.extents().rank() > Shape::kMaxRank) return no("too many axes");
  if (!is_whole(verdict.region, domain.extents())) return no("a padding covers a part of its rows");
  if (!domain.has_rows() && !declare_rows(group, verdict.map, elements)) {
    if (!is_dense(verdict.map, domain.extents(), domain.extents().rank()))
      return no("the kernel that reads it does not run in its order");
    // The group so far runs over the results: it becomes what is done with them, row by row.
    for (const Expression& e : group.expressions)
      for (const GroupOperand& o : e.operands)
        if (!o.fills.empty()) return no("the kernel that reads it pads");
    for (const GroupOutput& o : group.outputs)
      if (o.window) return no("the kernel that reads it is a part of a concatenation");
    follow_cuts(group);
    domain.maps.push_back(&verdict.map);
    domain.boxes.push_back(&verdict.region);
    domain.append({elements});
    for (Expression& e : group.expressions) e.of_rows = true;
    return true;
  }
  if (domain.row_elements() != elements) return no("the kernel that reads it has rows of another length");
  if (!is_of_rows(verdict.map, domain) || !is_dense(verdict.map, domain.extents(), domain.outer()))
    return no("the kernel that reads it does not run in its order");
  return true;
}

}  // namespace ferrite::detail
