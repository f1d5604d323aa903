/// Groups while they grow: expressions, operands through views, windows for operations that run alone.
#include "ferrite/compile/fuse/detail/groups.h"

#include <algorithm>

#include "ferrite/compile/fuse/detail/fused_schedule.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

Groups::Groups(const GraphView& view)
    : view_(view),
      uses_(view.graph().values.size()),
      users_(uses_.size()),
      first_alone_(uses_.size(), kNoNode),
      must_copy_(uses_.size()),
      windows_(uses_.size()) {
  for (const Graph::Constant& c : view.graph().constants) windows_[c.value] = {c.value, c.tensor.strides(), 0};
}

std::size_t Groups::earliest_use(ValueId v) const {
  std::size_t first = first_alone_[v];
  for (const Use& u : uses_[v]) first = std::min(first, groups_[u.group].position);
  return first;
}

std::string refusal(const GraphView& view, ValueId v, const std::string& why) {
  const Graph::Node* const n = view.node_of(v);
  return "%" + std::to_string(v) + " " + (n ? std::string(n->op->name) + " " : "") + view.spec(v).str() + ": " + why;
}

void Groups::refuse(ValueId v, const std::string& why) { refusals_.push_back(refusal(view_, v, why)); }

// ---- expressions ---------------------------------------------------------------------------------------

std::size_t Groups::add_group(std::size_t position, const Shape& extents) {
  Group& group = groups_.emplace_back(extents);
  group.position = position;
  group.root = IndexMap::identity(extents);
  return groups_.size() - 1;
}

int Groups::add(std::size_t node, ValueId v, const Placement& at) {
  Group& group = groups_[at.group];
  const int number = static_cast<int>(group.expressions.size());
  Expression& e = group.expressions.emplace_back();
  e.node = &view_.graph().nodes[node];
  e.order = node;
  e.dtype = view_.spec(v).dtype;
  e.map = at.map;
  e.region = at.region;
  e.of_rows = is_of_rows(e.map, group.domain);
  for (const Use& u : uses_[v]) {
    if (u.group != at.group) continue;
    GroupOperand& o = group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
    if (!at.in_parts || (o.map == e.map && o.expression < 0)) o.expression = number;
  }
  users_[v].push_back(at.group);
  if (!at.store) return number;
  GroupOutput& output = group.outputs.emplace_back(GroupOutput{number, v});
  if (!at.in_parts) return number;
  output.window = true;
  output.layout.strides = e.map.shape.strides();
  for (int a = 0; a < e.map.shape.rank(); ++a) output.layout.offset += e.map.offset[a] * output.layout.strides[a];
  return number;
}

void Groups::add_copy(std::size_t node, ValueId source, std::size_t at, GroupOutput output) {
  Group& group = groups_[at];
  output.expression = static_cast<int>(group.expressions.size());
  group.outputs.push_back(output);
  Expression& e = group.expressions.emplace_back();
  e.order = node;
  e.dtype = view_.spec(source).dtype;
  e.map = group.root;
  e.region = whole_box(group.domain.extents());
  read(at, output.expression, source, IndexMap(group.root));
}

void Groups::read_operands(std::size_t group, int expression) {
  Expression& e = groups_[group].expressions[static_cast<std::size_t>(expression)];
  const Graph::Node& n = *e.node;
  const auto arity = n.op->is_pointwise() ? static_cast<std::size_t>(n.op->arity) : n.in.size();
  std::size_t next = 0;
  for (std::size_t j = 0; j < arity; ++j) {
    if (const Scalar* const literal = n.in.size() < arity ? literal_of(n.attrs, j) : nullptr) {
      e.operands.emplace_back().literal = *literal;
    } else {
      const ValueId v = n.in[next++];
      read(group, expression, v, through_broadcast(e.map, view_.spec(v).shape));
    }
  }
}

void Groups::read(std::size_t at, int expression, ValueId v, const IndexMap& map) {
  Group& group = groups_[at];
  Expression& e = group.expressions[static_cast<std::size_t>(expression)];
  GroupOperand o;
  o.value = v;
  o.map = map;
  while (follow_view(group, o)) continue;
  settle(o.map, group.domain.extents());
  o.region = o.fills.empty() ? e.region : o.fills[0].box;
  uses_[o.value].push_back({at, expression, e.operands.size()});
  users_[o.value].push_back(at);
  ++group.loads;
  e.operands.push_back(std::move(o));
}

bool Groups::copied(ValueId v, const char* why) {
  refuse(v, why);
  must_copy_[v] = true;
  return false;
}

/// One view further: false where the operand's value is what is read.
bool Groups::follow_view(Group& group, GroupOperand& o) {
  const ValueId v = o.value;
  const Graph::Node* const n = view_.node_of(v);
  if (!n || must_copy_[v] || (!n->op->view && n->op != ops::pad)) return false;
  const Shape& operand = view_.spec(n->in[0]).shape;
  if (is_empty(n->in[0]) || n->op == ops::contiguous) {
    must_copy_[v] = true;
    return false;
  }
  if (n->op == ops::pad) {
    const auto constants = n->attrs.as<PadAttrs>();
    const IndexMap inner = through_pad(o.map, constants.before, operand);
    const std::optional<Box> box = valid(inner, group.domain.extents());
    if (!box) return copied(v, "its padding is no box in the kernel that reads it; it is copied");
    o.map = inner;
    if (!is_whole(*box, group.domain.extents())) o.fills.insert(o.fills.begin(), {*box, constants.value});
  } else if (const std::optional<ViewRule> rule = rule_of_view(view_.graph(), *n, view_.result(v))) {
    o.map = through(o.map, *rule);
  } else if (n->op != ops::reshape) {
    return copied(v, "it is a view that no axis of its operand follows; it is copied");
  } else {
    Followers followers = group.followers();
    followers.maps.push_back(&o.map);
    for (Fill& f : o.fills) followers.boxes.push_back(&f.box);
    const std::optional<IndexMap> inner = through_reshape(group.domain, std::move(followers), o.map, operand);
    if (!inner) return copied(v, "its elements lie in no affine order for the kernel that reads it; it is copied");
    o.map = *inner;
  }
  o.value = n->in[0];
  return true;
}

bool Groups::copy_view(std::size_t node, ValueId v) {
  const std::size_t at = add_group(node, view_.spec(v).shape);
  must_copy_[v] = false;  // it is followed here, not read from memory
  add_copy(node, v, at, {.value = v});
  if (groups_[at].expressions[0].operands[0].value != v) return true;
  groups_.pop_back();
  uses_[v].pop_back();
  users_[v].pop_back();
  return false;
}

// ---- operations that run alone -------------------------------------------------------------------------

void Groups::read_alone(std::size_t node) {
  for (const ValueId v : view_.graph().nodes[node].in) {
    const ValueId base = window_of(v).base;
    first_alone_[base] = std::min(first_alone_[base], node);
  }
}

const Window& Groups::window_of(ValueId v) {
  Window& w = windows_[v];
  if (w.base != kNoValue) return w;
  const Graph::Node* const n = view_.node_of(v);
  if (n && n->op->view && !must_copy_[v] && !is_empty(v)) {
    const Window& from = window_of(n->in[0]);
    const Tensor x = Tensor::abstract(view_.spec(n->in[0]));
    x.impl()->strides = from.strides;
    x.impl()->contiguous = is_contiguous(x.shape(), from.strides);
    Layout layout;
    if (n->op->view(x, view_.spec(v), n->attrs, view_.result(v), layout)) {
      w = {from.base, layout.strides, from.offset + layout.offset};
      return w;
    }
    refuse(v, "its strides leave no window for an operation that runs alone; it is copied");
  }
  if (n && (n->op->view || n->op == ops::pad)) must_copy_[v] = true;
  w = {v, view_.spec(v).shape.strides(), 0};
  return w;
}

}  // namespace ferrite::detail
