#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
namespace {

/// Whether `axes` are the first ones, or the last ones.
bool are_from(const Shape& axes, int first) {
  for (int i = 0; i < axes.rank(); ++i)
    if (axes[i] != first + i) return false;
  return axes.rank() > 0;
}

/// From the axes of a reduction's operand to its result.
IndexMap map_of_result(const Shape& operand, const Shape& result, const Shape& axes) {
  const bool keeps = result.rank() == operand.rank();
  IndexMap map;
  map.shape = result;
  map.offset = Shape::filled(result.rank(), 0);
  int next = 0;
  for (int k = 0; k < operand.rank(); ++k) {
    bool reduced = false;
    for (const std::int64_t a : axes) reduced |= a == k;
    map.axis.push_back(reduced ? -1 : keeps ? k : next);
    map.coefficient.push_back(reduced ? 0 : 1);
    next += reduced ? 0 : 1;
  }
  return map;
}

}  // namespace

/// A reduction of the first axes, or of rows too long for a tile: it ends the kernel that computes its operand.
void Fuser::visit_across(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  const ValueId v = n.out[0];
  const Spec& operand = g_.values[n.in[0]];
  const Shape axes = n.attrs.as<ReductionAttrs>().axes;
  const std::size_t maker = producer_[source_of(n.in[0])];
  const bool computed = maker != kNoNode && is_elementwise(*g_.nodes[maker].op);
  if (!computed || !n.op->row_reduction(operand.dtype)) return visit_single(i);
  const bool last = g_.values[v].shape.numel() == 1 || are_from(axes, operand.shape.rank() - axes.rank());
  const std::int64_t elements = operand.shape.numel() / g_.values[v].shape.numel();
  if ((!last && !are_from(axes, 0)) || elements < 2) {
    refuse(v, "it reduces neither the first axes nor the last; what it reads is written for it");
    return visit_single(i);
  }
  Verdict verdict;
  verdict.group = new_group(i, operand.shape);
  verdict.map = map_of_result(operand.shape, g_.values[v].shape, axes);
  verdict.region = whole_box(operand.shape);
  verdict.store = true;
  Group& group = out_.groups[verdict.group];
  group.across = last ? Across::long_rows : Across::columns;
  group.across_elements = elements;
  const IndexMap root = group.root;
  join(i, v, verdict).reduces = true;
  add_operand(verdict.group, 0, n.in[0], root);
}

}  // namespace ferrite::detail
