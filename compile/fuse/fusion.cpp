#include "ferrite/compile/fuse/fusion.h"

#include <algorithm>

#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
bool is_elementwise(const Primitive& op) { return op.is_pointwise() || op.element_block != nullptr; }

Block block_of(const Graph& g, const Graph::Node& n) {
  const Dtype first = n.in.empty() ? Dtype::f32 : g.values[n.in[0]].dtype;
  if (!n.op->is_pointwise()) return n.op->element_block(first, n.attrs);
  const Dtype out = g.values[n.out[0]].dtype;
  return n.op->block(out == Dtype::boolean ? first : out);
}

bool is_dense(const IndexMap& map, const Shape& extents, int axes) {
  Shape leading;
  for (int k = 0; k < axes; ++k) leading.push_back(extents[k]);
  if (map.shape.numel() != leading.numel()) return false;
  const Shape strides = map.shape.strides();
  std::int64_t offset = 0;
  for (int a = 0; a < map.shape.rank(); ++a) offset += map.offset[a] * strides[a];
  if (offset != 0) return false;
  const Shape wanted = leading.strides();
  for (int k = 0; k < axes; ++k) {
    if (extents[k] == 1) continue;
    if (map.axis[k] < 0 || map.coefficient[k] * strides[static_cast<int>(map.axis[k])] != wanted[k]) return false;
  }
  return true;
}

std::vector<char> live_expressions(const Group& group) {
  std::vector<char> live(group.expressions.size());
  std::vector<int> open;
  for (const GroupOutput& o : group.outputs) open.push_back(o.expression);
  while (!open.empty()) {
    const auto e = static_cast<std::size_t>(open.back());
    open.pop_back();
    if (live[e]) continue;
    live[e] = true;
    for (const GroupOperand& o : group.expressions[e].operands)
      if (o.value != kNoValue && o.expression >= 0) open.push_back(o.expression);
  }
  return live;
}

void materialize_ends(Graph& g) {
  const GraphView view(g);
  std::vector<ValueId> copy(g.values.size(), kNoValue);
  const auto ensure = [&](ValueId& v) {
    const Graph::Node* const n = view.node_of(v);
    if (n && !n->op->view && n->op != ops::pad) return;
    const Scope scope = n ? n->scope : Scope();
    if (copy[v] == kNoValue) copy[v] = g.add_node(*ops::contiguous, {}, {v}, Spec(g.values[v]), scope);
    v = copy[v];
  };
  for (ValueId& v : g.outputs) ensure(v);
  for (Graph::CellValue& w : g.writes) ensure(w.value);
}

void move_copies_up(Graph& g) {
  std::vector<std::size_t> behind(g.values.size(), 0);  // by value: after how many nodes that stay it is there
  std::vector<std::vector<std::size_t>> moved(g.nodes.size() + 1);
  std::size_t stay = 0;
  std::vector<char> moves(g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Graph::Node& n = g.nodes[i];
    moves[i] = n.op == ops::contiguous || n.op == ops::concat || n.op == ops::stack;
    std::size_t at = 0;
    for (const ValueId v : n.in) at = std::max(at, behind[v]);
    if (moves[i]) {
      moved[at].push_back(i);
    } else {
      at = ++stay;
    }
    for (const ValueId v : n.out) behind[v] = at;
  }
  std::vector<Graph::Node> nodes;
  nodes.reserve(g.nodes.size());
  const auto add_moved = [&](std::size_t at) {
    for (const std::size_t i : moved[at]) nodes.push_back(std::move(g.nodes[i]));
  };
  add_moved(0);
  stay = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    if (moves[i]) continue;
    nodes.push_back(std::move(g.nodes[i]));
    add_moved(++stay);
  }
  g.nodes = std::move(nodes);
}

// ---- the walk ------------------------------------------------------------------------------------------

Fuser::Fuser(const Graph& g, const FusionOptions& options)
    : g_(g),
      options_(options),
      producer_(g.values.size(), kNoNode),
      result_(g.values.size()),
      uses_(g.values.size()),
      first_reader_(g.values.size(), kNoNode),
      needed_(g.values.size()),
      must_copy_(g.values.size()),
      rows_behind_(g.values.size()),
      users_(g.values.size()) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i)
    for (std::size_t k = 0; k < g.nodes[i].out.size(); ++k) {
      producer_[g.nodes[i].out[k]] = i;
      result_[g.nodes[i].out[k]] = k;
    }
  for (const ValueId v : g.outputs) needed_[v] = true;
  for (const Graph::CellValue& w : g.writes) needed_[w.value] = true;
  find_rows();
  out_.stored.resize(g.values.size());
  out_.windows.resize(g.values.size());
  for (const Graph::Constant& c : g.constants) {
    out_.windows[c.value] = {c.value, c.tensor.strides(), 0};
    out_.stored[c.value] = true;
  }
}

Fused Fuser::run() {
  for (std::size_t i = g_.nodes.size(); i-- > 0;) visit(i);
  if (options_.fuse) write_parts_in_place();
  for (std::size_t k = 0; k < out_.groups.size(); ++k)
    if (!out_.groups[k].outputs.empty()) out_.tasks.push_back({out_.groups[k].position, static_cast<int>(k), 0, {}});
  std::stable_sort(out_.tasks.begin(), out_.tasks.end(),
                   [](const Task& a, const Task& b) { return a.position < b.position; });
  if (options_.fuse) attach_products();
  for (Group& group : out_.groups)
    for (const GroupOutput& o : group.outputs) out_.stored[o.value] = true;
  return std::move(out_);
}

void Fuser::visit(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  if (is_elementwise(*n.op)) return visit_elementwise(i);
  if (n.op == ops::contiguous) {
    if (!is_read(n.out[0])) return;
    const std::size_t beside = options_.fuse ? horizontal(n, n.out[0]).group : kNoNode;
    return copy_group(i, n.out[0], n.in[0], beside);
  }
  if (options_.fuse && n.op->row_reduction) return visit_reduction(i);
  if (n.op == ops::concat || n.op == ops::stack) return visit_join(i);
  if (n.op->view || n.op == ops::pad) return visit_view(i);
  visit_single(i);
}

bool Fuser::is_read(ValueId v) const {
  return needed_[v] || first_reader_[v] != kNoNode || !uses_[v].empty() || must_copy_[v];
}

bool Fuser::is_empty(ValueId v) const { return g_.values[v].shape.numel() == 0; }

void Fuser::visit_view(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  for (const ValueId v : n.out) {
    if (!must_copy_[v] || is_empty(v)) continue;
    copy_group(i, v, v);
    if (out_.groups.back().expressions[0].operands[0].value != v) continue;
    out_.groups.pop_back();  // more axes than a kernel has: the operation copies for itself
    uses_[v].pop_back();
    users_[v].pop_back();
    visit_single(i);
  }
}

void Fuser::copy_group(std::size_t i, ValueId target, ValueId source, std::size_t beside) {
  if (is_empty(target)) return;
  const std::size_t at = beside == kNoNode ? new_group(i, g_.values[target].shape) : beside;
  if (source == target) must_copy_[source] = false;  // it is being resolved here, not read from memory
  Expression& e = out_.groups[at].expressions.emplace_back();
  e.order = i;
  e.dtype = g_.values[target].dtype;
  e.map = out_.groups[at].root;
  e.region = whole_box(out_.groups[at].domain.extents());
  const int expression = static_cast<int>(out_.groups[at].expressions.size()) - 1;
  out_.groups[at].outputs.push_back({expression, target});
  add_operand(at, expression, source, IndexMap(e.map));
}

std::size_t Fuser::new_group(std::size_t position, const Shape& extents) {
  Group& group = out_.groups.emplace_back(extents);
  group.position = position;
  group.root = IndexMap::identity(extents);
  return out_.groups.size() - 1;
}

void Fuser::visit_single(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  bool any = effects_of(g_, n).must_run();
  for (const ValueId v : n.out) any |= is_read(v) && !is_empty(v);
  if (!any) return;
  for (const ValueId v : n.out) out_.stored[v] = true;
  for (const ValueId v : n.in) read_alone(i, v);
  out_.tasks.push_back({i, -1, i, {}});
}

/// An operation that runs alone reads v through strides, from the nearest value in memory that has them.
void Fuser::read_alone(std::size_t reader, ValueId v) {
  const Window& w = window_of(v);
  first_reader_[w.base] = std::min(first_reader_[w.base], reader);
}

const Window& Fuser::window_of(ValueId v) {
  Window& w = out_.windows[v];
  if (w.base != kNoValue) return w;
  const Spec& spec = g_.values[v];
  const std::size_t p = producer_[v];
  if (p != kNoNode && g_.nodes[p].op->view && !must_copy_[v] && !is_empty(v)) {
    const Graph::Node& n = g_.nodes[p];
    const Window& from = window_of(n.in[0]);
    const Tensor x = Tensor::abstract(g_.values[n.in[0]]);
    x.impl()->strides = from.strides;
    x.impl()->contiguous = from.strides == x.shape().strides();
    Layout layout;
    if (n.op->view(x, spec, n.attrs, result_[v], layout)) {
      w = {from.base, layout.strides, from.offset + layout.offset};
      return w;
    }
    refuse(v, "its strides leave no window for an operation that runs alone; it is copied");
  }
  const bool copied = p != kNoNode && (g_.nodes[p].op->view || g_.nodes[p].op == ops::pad);
  if (copied) must_copy_[v] = true;
  w = {v, spec.shape.strides(), 0};
  return w;
}

void Fuser::refuse(ValueId v, const std::string& why) {
  const std::size_t p = producer_[v];
  out_.refusals.push_back("%" + std::to_string(v) + " " +
                          (p == kNoNode ? "" : std::string(g_.nodes[p].op->name) + " ") + g_.values[v].str() + ": " +
                          why);
}

Fused fuse(const Graph& g, const FusionOptions& options) { return Fuser(g, options).run(); }

}  // namespace ferrite::detail
