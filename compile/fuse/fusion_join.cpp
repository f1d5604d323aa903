#include <algorithm>

#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {
namespace {

constexpr std::size_t kMostExpressions = 96;
constexpr int kMostLoads = 48;
constexpr std::size_t kMostNeighbours = 8;
/// Of a padded value's elements to those that are not padding.
constexpr std::int64_t kMostPadding = 2;
/// An operation may be repeated for so many elements rather than be given a kernel of its own: so many points in all,
/// or so many more than there are elements.
constexpr std::int64_t kFewElements = 256;
constexpr std::int64_t kFewRepeated = 512;

}  // namespace

void Fuser::visit_elementwise(std::size_t i) {
  const ValueId v = g_.nodes[i].out[0];
  if (!is_read(v) || is_empty(v)) return;
  Verdict verdict;
  if (options_.fuse) {
    verdict = vertical(v);
    if (verdict.group == kNoNode) verdict = horizontal(g_.nodes[i], v);
  }
  if (verdict.group == kNoNode) {
    verdict.group = new_group(i, g_.values[v].shape);
    verdict.map = out_.groups[verdict.group].root;
    verdict.region = whole_box(g_.values[v].shape);
    verdict.store = true;
  }
  for (;;) {
    join(i, v, verdict);
    Group& group = out_.groups[verdict.group];
    add_operands(verdict.group, static_cast<int>(group.expressions.size()) - 1);
    if (!verdict.in_parts) return;
    const auto left = std::find_if(uses_[v].begin(), uses_[v].end(), [&](const Use& u) {
      return u.group == verdict.group &&
             group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand].expression < 0;
    });
    if (left == uses_[v].end()) return;
    verdict.map = group.expressions[static_cast<std::size_t>(left->expression)].operands[left->operand].map;
    verdict.region = whole_box(group.domain.extents());
  }
}

/// The first place where v must be in memory or known.
std::size_t Fuser::earliest_use(ValueId v) const {
  std::size_t first = first_reader_[v];
  for (const Use& u : uses_[v]) first = std::min(first, out_.groups[u.group].position);
  return first;
}

/// The earliest group that reads v, if v can be computed there at all: in time, and in one way.
Fuser::Verdict Fuser::earliest_group(ValueId v) {
  const std::vector<Use>& uses = uses_[v];
  if (uses.empty()) return {};
  Verdict verdict;
  verdict.group = uses[0].group;
  for (const Use& u : uses)
    if (out_.groups[u.group].position < out_.groups[verdict.group].position) verdict.group = u.group;
  const Group& group = out_.groups[verdict.group];
  const auto no = [&](const std::string& why) {
    refuse(v, why);
    return Verdict{};
  };
  if (first_reader_[v] <= group.position) return no("an operation that runs alone reads it before");
  verdict.store = needed_[v] || first_reader_[v] != kNoNode;
  bool first = true;
  for (const Use& u : uses) {
    if (u.group != verdict.group) {
      if (out_.groups[u.group].position == group.position) return no("two kernels of one concatenation read it");
      verdict.store = true;
      continue;
    }
    const GroupOperand& o = group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
    if (first) {
      verdict.map = o.map;
      verdict.region = o.region;
    } else if (verdict.in_parts) {
      continue;
    } else if (!(o.map == verdict.map)) {
      verdict.in_parts = covers_in_parts(v, verdict.group);
      if (!verdict.in_parts) return no("one kernel reads it through two different views");
    } else if (!(o.region == verdict.region)) {
      verdict.region = hull(o.region, verdict.region);
      if (!is_valid_in(o.map, verdict.region)) return no("one kernel reads it under two different paddings");
    }
    first = false;
  }
  if (group.expressions.size() >= kMostExpressions || group.loads >= kMostLoads) return no("its kernel is full");
  return verdict;
}

/// Into the earliest group that reads it.
Fuser::Verdict Fuser::vertical(ValueId v) {
  Verdict verdict = earliest_group(v);
  if (verdict.group == kNoNode) return verdict;
  Group& group = out_.groups[verdict.group];
  const Shape& extents = group.domain.extents();
  const auto no = [&](const std::string& why) {
    refuse(v, why);
    return Verdict{};
  };
  if (rows_behind_[v] && !group.domain.has_rows()) (void)declare_rows(group, verdict.map, rows_behind_[v]);
  const bool of_rows = is_of_rows(verdict.map, group.domain);
  const int axes = of_rows ? group.domain.outer() : extents.rank();
  if (of_rows && !is_whole(verdict.region, extents)) return no("a padding covers a part of its rows");
  const bool in_order = verdict.in_parts ? fills_in_parts(v, verdict.group)
                                         : is_dense(verdict.map, extents, axes) && is_whole(verdict.region, extents);
  if (verdict.store && !in_order)
    return no("it is also needed in memory, and the kernel that reads it does not run in its order");
  // Repeated along an axis, or mostly padding: computing it once and reading it costs less.
  const std::int64_t elements = g_.values[v].shape.numel();
  std::int64_t points = 1;
  std::int64_t repeats = 1;
  for (int k = 0; k < axes; ++k) {
    points *= extents[k];
    if (verdict.map.axis[k] < 0) repeats *= extents[k];
  }
  const bool few = points <= kFewElements || points - elements <= kFewRepeated;
  if (options_.guard && !few && (repeats > 1 || points > kMostPadding * elements))
    return no("it would be computed " + std::to_string(points) + " times for " + std::to_string(elements) +
              " elements");
  return verdict;
}

/// Beside another group of the same shape that reads what it reads.
Fuser::Verdict Fuser::horizontal(const Graph::Node& n, ValueId v) const {
  for (const ValueId in : n.in)
    if (const std::size_t at = beside(in, g_.values[v].shape, earliest_use(v)); at != kNoNode) {
      const Group& group = out_.groups[at];
      return {at, group.root, whole_box(group.domain.extents()), true, false};
    }
  return {};
}

/// A group of that shape that reads what `in` is or is a view of, and runs before a node.
std::size_t Fuser::beside(ValueId in, const Shape& shape, std::size_t until) const {
  const std::vector<std::size_t>& users = users_[source_of(in)];
  for (std::size_t k = 0; k < std::min(users.size(), kMostNeighbours); ++k) {
    const std::size_t at = users[users.size() - 1 - k];
    const Group& group = out_.groups[at];
    if (group.position >= until || !(group.root.shape == shape)) continue;
    if (group.expressions.size() < kMostExpressions / 2 && group.loads < kMostLoads / 2) return at;
  }
  return kNoNode;
}

ValueId Fuser::source_of(ValueId v) const {
  for (std::size_t p = producer_[v]; p != kNoNode && g_.nodes[p].op->view; p = producer_[v]) v = g_.nodes[p].in[0];
  return v;
}

Expression& Fuser::join(std::size_t i, ValueId v, const Verdict& verdict) {
  Group& group = out_.groups[verdict.group];
  const int at = static_cast<int>(group.expressions.size());
  Expression& e = group.expressions.emplace_back();
  e.value = v;
  e.node = &g_.nodes[i];
  e.order = i;
  e.dtype = g_.values[v].dtype;
  e.map = verdict.map;
  e.region = verdict.region;
  e.of_rows = is_of_rows(e.map, group.domain);
  for (const Use& u : uses_[v]) {
    if (u.group != verdict.group) continue;
    GroupOperand& o = group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
    if (!verdict.in_parts || (o.map == e.map && o.expression < 0)) o.expression = at;
  }
  users_[v].push_back(verdict.group);
  if (verdict.store && !verdict.in_parts) group.outputs.push_back({at, v});
  if (verdict.store && verdict.in_parts) {
    Layout layout{e.map.shape.strides(), 0};
    for (int a = 0; a < e.map.shape.rank(); ++a) layout.offset += e.map.offset[a] * layout.strides[a];
    group.outputs.push_back({at, v, true, layout});
  }
  return e;
}

/// The operands of a node in the order of its kernel: tensors, and literals from its constants.
void Fuser::add_operands(std::size_t group, int expression) {
  const Expression& e = out_.groups[group].expressions[static_cast<std::size_t>(expression)];
  const Graph::Node& n = *e.node;
  const auto arity = n.op->is_pointwise() ? static_cast<std::size_t>(n.op->arity) : n.in.size();
  std::size_t next = 0;
  for (std::size_t j = 0; j < arity; ++j) {
    const Scalar* literal = n.in.size() < arity ? literal_of(n.attrs, j) : nullptr;
    if (!literal) {
      const ValueId v = n.in[next++];
      add_operand(group, expression, v,
                  through_broadcast(out_.groups[group].expressions[static_cast<std::size_t>(expression)].map,
                                    g_.values[v].shape));
      continue;
    }
    GroupOperand o;
    o.literal = *literal;
    out_.groups[group].expressions[static_cast<std::size_t>(expression)].operands.push_back(std::move(o));
  }
}

/// While axes may be cut, everything in a group follows.
void Fuser::follow_cuts(Group& group) {
  group.domain.maps = {&group.root};
  group.domain.boxes.clear();
  for (Expression& e : group.expressions) {
    group.domain.maps.push_back(&e.map);
    group.domain.boxes.push_back(&e.region);
    for (GroupOperand& other : e.operands) {
      if (other.value == kNoValue) continue;
      group.domain.maps.push_back(&other.map);
      group.domain.boxes.push_back(&other.region);
      for (Fill& f : other.fills) group.domain.boxes.push_back(&f.box);
    }
  }
}

/// Follows views from v to what must be in memory or computed here.
void Fuser::add_operand(std::size_t at, int expression, ValueId v, const IndexMap& map) {
  Group& group = out_.groups[at];
  GroupOperand o;
  o.map = map;
  follow_cuts(group);
  group.domain.maps.push_back(&o.map);
  while (resolve_once(group, o, v)) continue;
  settle(o.map, group.domain.extents());
  group.domain.maps.clear();
  group.domain.boxes.clear();
  o.value = v;
  Expression& e = group.expressions[static_cast<std::size_t>(expression)];
  o.region = o.fills.empty() ? e.region : o.fills[0].box;
  uses_[v].push_back({at, expression, e.operands.size()});
  users_[v].push_back(at);
  ++group.loads;
  e.operands.push_back(std::move(o));
}

/// One view further: false where v is what is read.
bool Fuser::resolve_once(Group& group, GroupOperand& o, ValueId& v) {
  const std::size_t p = producer_[v];
  if (p == kNoNode || must_copy_[v]) return false;
  const Graph::Node& n = g_.nodes[p];
  const bool is_pad = n.op == ops::pad;
  if (!n.op->view && !is_pad) return false;
  if (is_empty(n.in[0]) || n.op == ops::contiguous) {
    if (is_pad || n.op->view) must_copy_[v] = true;
    return false;
  }
  if (is_pad) {
    const auto constants = n.attrs.as<PadAttrs>();
    const IndexMap inner = through_pad(o.map, constants.before, g_.values[n.in[0]].shape);
    const std::optional<Box> box = valid(inner, group.domain.extents());
    if (!box) {
      refuse(v, "its padding is no box in the kernel that reads it; it is copied");
      must_copy_[v] = true;
      return false;
    }
    o.map = inner;
    if (!is_whole(*box, group.domain.extents())) o.fills.insert(o.fills.begin(), {*box, constants.value});
  } else if (const std::optional<ViewRule> rule = rule_of_view(g_, n, result_[v])) {
    o.map = through(o.map, *rule);
  } else if (n.op != ops::reshape) {
    refuse(v, "it is a view that no axis of its operand follows; it is copied");
    must_copy_[v] = true;
    return false;
  } else {
    for (Fill& f : o.fills) group.domain.boxes.push_back(&f.box);
    const std::optional<IndexMap> inner = through_reshape(group.domain, o.map, g_.values[n.in[0]].shape);
    for (std::size_t k = 0; k < o.fills.size(); ++k) group.domain.boxes.pop_back();
    if (!inner) {
      refuse(v, "its elements lie in no affine order for the kernel that reads it; it is copied");
      must_copy_[v] = true;
      return false;
    }
    o.map = *inner;
  }
  v = n.in[0];
  return true;
}

}  // namespace ferrite::detail
