/// One stage of a scan written as a graph, for one step or for a chunk of steps.
#include "ferrite/compile/scan/detail/stage.h"

#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
namespace {

/// The constants of a node after a change of their struct.
template <class S, class Change>
Attrs changed(const Graph::Node& n, Change change) {
  S constants = n.attrs.as<S>(n.op->name);
  change(constants);
  return constants;
}

Shape moved_up(const Shape& axes, bool keep_first) {
  Shape up;
  if (keep_first) up.push_back(0);
  for (const std::int64_t a : axes) up.push_back(a + 1);
  return up;
}

bool reduces(const Primitive& op) {
  return &op == ops::sum || &op == ops::prod || &op == ops::amax || &op == ops::amin;
}

}  // namespace

bool can_stack(const Graph& g, const Graph::Node& n, const std::function<bool(ValueId)>& differs) {
  constexpr int kMostAxes = 7;  // one more must fit
  for (const ValueId v : n.in)
    if (g.values[v].shape.rank() > kMostAxes) return false;
  if (n.out.size() != 1 || g.values[n.out[0]].shape.rank() > kMostAxes) return false;
  if (n.op == ops::matmul)
    return differs(n.in[0]) && !differs(n.in[1]) && g.values[n.in[1]].shape.rank() == 2 &&
           g.values[n.in[0]].shape.rank() == 2;
  if (n.op == ops::concat || n.op == ops::stack) return std::all_of(n.in.begin(), n.in.end(), differs);
  if (n.op == ops::reshape || n.op == ops::permute || n.op == ops::expand || n.op == ops::slice ||
      n.op == ops::contiguous)
    return true;
  return is_elementwise(*n.op) || reduces(*n.op);
}

ScanStage StageWriter::write(std::int64_t chunk, const std::function<bool(ValueId)>& differs) {
  chunk_ = chunk;
  differs_ = differs;
  local_.assign(g_.values.size(), kNoValue);
  needed_.assign(g_.values.size(), 0);
  for (const Out& o : outs_) needed_[o.value] = 1;
  const std::vector<char> nodes = mark_needed(g_, needed_, runs_);
  add_outsiders();
  for (std::size_t i = 0; i < g_.nodes.size(); ++i)
    if (nodes[i]) add(g_.nodes[i]);
  for (const Out& o : outs_) {
    stage_.graph.outputs.push_back(local_[o.value]);
    stage_.out.push_back(o.to);
  }
  return std::move(stage_);
}

void StageWriter::add_outsiders() {
  Graph& to = stage_.graph;
  for (const Graph::Constant& c : g_.constants)
    if (needed_[c.value]) local_[c.value] = to.add_constant(c.tensor);
  for (ValueId v = 0; v < g_.values.size(); ++v) {
    if (!needed_[v] || local_[v] != kNoValue || (view_.producer(v) != kNoNode && runs_(view_.producer(v)))) continue;
    local_[v] = to.add_value(chunk_ && differs_(v) ? stacked(g_.values[v]) : g_.values[v]);
    to.inputs.push_back(local_[v]);
    stage_.in.push_back(outside_(v));
  }
}

Spec StageWriter::stacked(const Spec& s) const { return {with_steps(chunk_, s.shape), s.dtype}; }

void StageWriter::add(const Graph::Node& n) {
  if (chunk_ && std::any_of(n.in.begin(), n.in.end(), differs_)) return stack(n);
  Graph::Node copy = n;
  for (ValueId& v : copy.in) v = local_[v];
  for (ValueId& v : copy.out) {
    local_[v] = stage_.graph.add_value(g_.values[v]);
    v = local_[v];
  }
  stage_.graph.nodes.push_back(std::move(copy));
}

ValueId StageWriter::view(const Primitive& op, const Shape& shape, ValueId v) {
  Graph& to = stage_.graph;
  if (to.values[v].shape == shape) return v;
  const Dtype dtype = to.values[v].dtype;
  return to.add_node(op, ShapeAttrs{shape}, {v}, {shape, dtype}, scope_);
}

/// An operand of which every step has that many axes.
ValueId StageWriter::widened(ValueId v, int rank) {
  const ValueId here = local_[v];
  if (!differs_(v)) return here;
  Shape wide{chunk_};
  const Shape& own = g_.values[v].shape;
  for (int k = own.rank(); k < rank; ++k) wide.push_back(1);
  for (const std::int64_t e : own) wide.push_back(e);
  return view(*ops::reshape, wide, here);
}

void StageWriter::stack(const Graph::Node& n) {
  scope_ = n.scope;
  Graph& to = stage_.graph;
  const Spec out = stacked(g_.values[n.out[0]]);
  const int rank = g_.values[n.out[0]].shape.rank();
  ValueId& result = local_[n.out[0]];
  if (n.op == ops::matmul) {  // one product of all rows
    const Shape a = g_.values[n.in[0]].shape;
    const Shape rows{chunk_ * a[0], a[1]};
    const Shape product{rows[0], out.shape[-1]};
    const ValueId flat = view(*ops::reshape, rows, local_[n.in[0]]);
    result = view(*ops::reshape, out.shape,
                  to.add_node(*ops::matmul, {}, {flat, local_[n.in[1]]}, {product, out.dtype}, scope_));
    return;
  }
  if (n.op == ops::reshape) {
    result = view(*ops::reshape, out.shape, local_[n.in[0]]);
    return;
  }
  if (n.op == ops::expand) {
    result = view(*ops::expand, out.shape, widened(n.in[0], rank));
    return;
  }
  Graph::Node copy = n;
  const bool elementwise = is_elementwise(*n.op);
  for (ValueId& v : copy.in) v = elementwise ? widened(v, rank) : local_[v];
  if (n.op == ops::permute)
    copy.attrs = changed<PermuteAttrs>(n, [](PermuteAttrs& a) { a.order = moved_up(a.order, true); });
  if (n.op == ops::slice) copy.attrs = changed<SliceAttrs>(n, [](SliceAttrs& a) { ++a.axis; });
  if (n.op == ops::concat || n.op == ops::stack) copy.attrs = changed<AxisAttrs>(n, [](AxisAttrs& a) { ++a.axis; });
  if (reduces(*n.op))
    copy.attrs = changed<ReductionAttrs>(n, [](ReductionAttrs& a) { a.axes = moved_up(a.axes, false); });
  result = to.add_value(out);
  copy.out[0] = result;
  to.nodes.push_back(std::move(copy));
}

}  // namespace ferrite::detail
