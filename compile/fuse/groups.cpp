/// Groups: what can be asked about them, how they grow, and which of them may compute a value.
#include "ferrite/compile/fuse/detail/groups.h"

#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

// ---- one group: live expressions, order in memory, kernels ------------------------------------------------

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

Followers Group::followers() {
  Followers all{{&root}, {}};
  for (Expression& e : expressions) {
    all.maps.push_back(&e.map);
    all.boxes.push_back(&e.region);
    for (GroupOperand& o : e.operands) {
      if (o.value == kNoValue) continue;
      all.maps.push_back(&o.map);
      all.boxes.push_back(&o.region);
      for (Fill& f : o.fills) all.boxes.push_back(&f.box);
    }
  }
  return all;
}

void Group::declare_rows(int first_axis) {
  domain.set_outer(first_axis);
  for (Expression& e : expressions) e.of_rows = is_of_rows(e.map, domain);
}

// ---- groups while they grow: expressions, operands through views, windows for operations that run alone ----

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

/// Follows one view; returns false if the operand's value is not a view to follow.
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

// ---- which group may compute a value, and why not ---------------------------------------------------------

namespace {

constexpr std::size_t kMostExpressions = 96;
constexpr int kMostLoads = 48;
constexpr std::size_t kMostNeighbours = 8;
/// Maximum ratio of a padded value's elements to those that are not padding.
constexpr std::int64_t kMostPadding = 2;
/// An operation may be repeated rather than get its own kernel for at most kFewElements points in all, or at most
/// kFewRepeated points more than there are elements.
constexpr std::int64_t kFewElements = 256;
constexpr std::int64_t kFewRepeated = 512;

Placement no(const std::string& why) {
  Placement p;
  p.refusal = why;
  return p;
}

/// Returns the different views through which a group reads v.
std::vector<const IndexMap*> maps_in(const Groups& groups, ValueId v, std::size_t at) {
  std::vector<const IndexMap*> maps;
  for (const Groups::Use& u : groups.uses(v)) {
    if (u.group != at) continue;
    const IndexMap& map = groups.operand(u).map;
    if (std::none_of(maps.begin(), maps.end(), [&](const IndexMap* m) { return *m == map; })) maps.push_back(&map);
  }
  return maps;
}

/// Returns whether a group reads v through views that together are not larger than v, so that computing each part where
/// it is read costs nothing: the gates in the columns of one product.
bool covers_in_parts(const Groups& groups, ValueId v, std::size_t at) {
  const Domain& domain = groups[at].domain;
  if (domain.has_rows()) return false;
  for (const Groups::Use& u : groups.uses(v))
    if (u.group == at && !is_whole(groups.operand(u).region, domain.extents())) return false;
  const auto parts = static_cast<std::int64_t>(maps_in(groups, v, at).size());
  return parts * domain.extents().numel() <= groups.view().spec(v).shape.numel();
}

/// Returns whether the views through which a group reads v are adjacent slices along one axis that make up all of v:
/// then the kernel that computes the parts also writes v.
bool fills_in_parts(const Groups& groups, ValueId v, std::size_t at) {
  const Shape& extents = groups[at].domain.extents();
  std::vector<const IndexMap*> maps = maps_in(groups, v, at);
  const IndexMap& first = *maps[0];
  if (static_cast<std::int64_t>(maps.size()) * extents.numel() != groups.view().spec(v).shape.numel()) return false;
  int axis = -1;
  for (const IndexMap* m : maps) {
    if (!(m->axis == first.axis) || !(m->coefficient == first.coefficient)) return false;
    for (int a = 0; a < first.shape.rank(); ++a) {
      if (m->offset[a] == first.offset[a]) continue;
      if (axis >= 0 && axis != a) return false;
      axis = a;
    }
  }
  if (axis < 0) return false;
  std::int64_t length = 0;
  for (int k = 0; k < extents.rank(); ++k) {
    if (extents[k] > 1 && (first.axis[k] < 0 || first.coefficient[k] != 1)) return false;
    if (first.axis[k] != axis) continue;
    if (length) return false;
    length = extents[k];
  }
  std::sort(maps.begin(), maps.end(),
            [&](const IndexMap* a, const IndexMap* b) { return a->offset[axis] < b->offset[axis]; });
  for (std::size_t i = 0; i < maps.size(); ++i)
    if (maps[i]->offset[axis] != static_cast<std::int64_t>(i) * length) return false;
  return length > 0;
}

}  // namespace

Placement in_earliest_reader(const Groups& groups, ValueId v) {
  const std::vector<Groups::Use>& uses = groups.uses(v);
  if (uses.empty()) return {};
  Placement p;
  p.group = uses[0].group;
  for (const Groups::Use& u : uses)
    if (groups[u.group].position < groups[p.group].position) p.group = u.group;
  const Group& group = groups[p.group];
  if (groups.first_alone(v) <= group.position) return no("an operation that runs alone reads it before");
  p.store = groups.is_stored(v);
  bool first = true;
  for (const Groups::Use& u : uses) {
    if (u.group != p.group) {
      if (groups[u.group].position == group.position) return no("two kernels of one concatenation read it");
      p.store = true;
      continue;
    }
    const GroupOperand& o = groups.operand(u);
    if (first) {
      p.map = o.map;
      p.region = o.region;
    } else if (p.in_parts) {
      continue;
    } else if (!(o.map == p.map)) {
      p.in_parts = covers_in_parts(groups, v, p.group);
      if (!p.in_parts) return no("one kernel reads it through two different views");
    } else if (!(o.region == p.region)) {
      p.region = hull(o.region, p.region);
      if (!is_valid_in(o.map, p.region)) return no("one kernel reads it under two different paddings");
    }
    first = false;
  }
  if (group.expressions.size() >= kMostExpressions || group.loads >= kMostLoads) return no("its kernel is full");
  return p;
}

Placement unless_costly(const Groups& groups, ValueId v, Placement at, bool guard) {
  const Group& group = groups[at.group];
  const Shape& extents = group.domain.extents();
  const bool of_rows = is_of_rows(at.map, group.domain);
  const int axes = of_rows ? group.domain.outer() : extents.rank();
  if (of_rows && !is_whole(at.region, extents)) return no("a padding covers a part of its rows");
  const bool in_order = at.in_parts ? fills_in_parts(groups, v, at.group)
                                    : is_dense(at.map, extents, axes) && is_whole(at.region, extents);
  if (at.store && !in_order)
    return no("it is also needed in memory, and the kernel that reads it does not run in its order");
  // If it is repeated along an axis, or mostly padding, computing it once and reading it costs less.
  const std::int64_t elements = groups.view().spec(v).shape.numel();
  std::int64_t points = 1;
  std::int64_t repeats = 1;
  for (int k = 0; k < axes; ++k) {
    points *= extents[k];
    if (at.map.axis[k] < 0) repeats *= extents[k];
  }
  const bool few = points <= kFewElements || points - elements <= kFewRepeated;
  if (guard && !few && (repeats > 1 || points > kMostPadding * elements))
    return no("it would be computed " + std::to_string(points) + " times for " + std::to_string(elements) +
              " elements");
  return at;
}

std::size_t sibling_of(const Groups& groups, ValueId operand, const Shape& shape, std::size_t until) {
  const std::vector<std::size_t>& users = groups.users(groups.view().root(operand));
  for (std::size_t k = 0; k < std::min(users.size(), kMostNeighbours); ++k) {
    const std::size_t at = users[users.size() - 1 - k];
    const Group& group = groups[at];
    if (group.position >= until || !(group.root.shape == shape)) continue;
    if (group.expressions.size() < kMostExpressions / 2 && group.loads < kMostLoads / 2) return at;
  }
  return kNoNode;
}

Placement with_sibling(const Groups& groups, std::span<const ValueId> operands, ValueId v) {
  for (const ValueId in : operands) {
    const std::size_t at = sibling_of(groups, in, groups.view().spec(v).shape, groups.earliest_use(v));
    if (at != kNoNode) return {at, groups[at].root, whole_box(groups[at].domain.extents()), true, false, {}};
  }
  return {};
}

// ---- rows that a reduction reduces inside a group ---------------------------------------------------------

namespace {

/// Maximum row length: longer rows would leave the caches before they are read again.
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
  // The group so far runs over the results: its expressions become operations on them, row by row.
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
