#include <algorithm>

#include "ferrite/compile/fuse/detail/fuser.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {

/// The different views through which a group reads v.
std::vector<const IndexMap*> Fuser::maps_in(ValueId v, std::size_t at) const {
  const Group& group = out_.groups[at];
  std::vector<const IndexMap*> maps;
  for (const Use& u : uses_[v]) {
    if (u.group != at) continue;
    const GroupOperand& o = group.expressions[static_cast<std::size_t>(u.expression)].operands[u.operand];
    const bool known = std::any_of(maps.begin(), maps.end(), [&](const IndexMap* m) { return *m == o.map; });
    if (!known) maps.push_back(&o.map);
  }
  return maps;
}

/// Whether a group reads v through views that together are not larger than v, so that computing each part where it is
/// read costs nothing: the gates in the columns of one product.
bool Fuser::covers_in_parts(ValueId v, std::size_t at) const {
  const Domain& domain = out_.groups[at].domain;
  if (domain.has_rows()) return false;
  for (const Use& u : uses_[v]) {
    if (u.group != at) continue;
    const Expression& e = out_.groups[at].expressions[static_cast<std::size_t>(u.expression)];
    if (!is_whole(e.operands[u.operand].region, domain.extents())) return false;
  }
  const auto parts = static_cast<std::int64_t>(maps_in(v, at).size());
  return parts * domain.extents().numel() <= g_.values[v].shape.numel();
}

/// Whether these views are neighbouring slices along one axis that make up all of v: then the kernel that computes the
/// parts also writes v.
bool Fuser::fills_in_parts(ValueId v, std::size_t at) const {
  const Shape& extents = out_.groups[at].domain.extents();
  std::vector<const IndexMap*> maps = maps_in(v, at);
  const IndexMap& first = *maps[0];
  if (static_cast<std::int64_t>(maps.size()) * extents.numel() != g_.values[v].shape.numel()) return false;
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

/// The parts of a concatenation or a stack are written where they belong, by the kernels that compute them.
void Fuser::visit_join(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  const ValueId whole = n.out[0];
  if (!is_read(whole) || is_empty(whole)) return;
  const int axis = n.attrs.as<AxisAttrs>().axis;
  const bool stacked = n.op == ops::stack;
  const Shape strides = g_.values[whole].shape.strides();
  std::int64_t begin = 0;
  std::vector<std::size_t> own;  // groups made here
  for (const ValueId part : n.in) {
    const Shape& shape = g_.values[part].shape;
    Layout layout{strides, begin * strides[axis]};
    if (stacked) layout.strides.erase(axis);
    begin += stacked ? 1 : shape[axis];
    if (is_empty(part)) continue;
    std::size_t at = kNoNode;
    for (const std::size_t k : own)
      if (out_.groups[k].root.shape == shape && out_.groups[k].outputs.size() < 16) at = k;
    if (at == kNoNode && options_.fuse) {
      at = beside(part, shape, earliest_use(whole));
      if (at != kNoNode) own.push_back(at);
    }
    if (at == kNoNode || !options_.fuse) {
      at = new_group(i, shape);
      own.push_back(at);
    }
    Group& group = out_.groups[at];
    const int expression = static_cast<int>(group.expressions.size());
    Expression& e = group.expressions.emplace_back();
    e.order = i;
    e.dtype = g_.values[part].dtype;
    e.map = group.root;
    e.region = whole_box(group.domain.extents());
    group.outputs.push_back({expression, whole, true, layout});
    add_operand(at, expression, part, e.map);
  }
}

/// A part that an earlier kernel computes for nothing else is written into the whole by that kernel: no copy.
void Fuser::write_parts_in_place() {
  std::vector<std::size_t> maker(g_.values.size(), kNoNode);  // by value: the group that computes it
  for (std::size_t at = 0; at < out_.groups.size(); ++at)
    for (const GroupOutput& o : out_.groups[at].outputs)
      if (!o.window) maker[o.value] = at;
  for (std::size_t at = 0; at < out_.groups.size(); ++at)
    std::erase_if(out_.groups[at].outputs,
                  [&](const GroupOutput& o) { return o.window && write_in_place(o, at, maker); });
}

bool Fuser::write_in_place(const GroupOutput& output, std::size_t at, const std::vector<std::size_t>& maker) {
  const Expression& copy = out_.groups[at].expressions[static_cast<std::size_t>(output.expression)];
  if (copy.node || copy.operands.size() != 1) return false;
  const GroupOperand& part = copy.operands[0];
  const ValueId v = part.value;
  if (part.expression >= 0 || !part.fills.empty() || maker[v] == kNoNode) return false;
  if (needed_[v] || first_reader_[v] != kNoNode) return false;
  // Only as it stands: the window's axes are those of the value.
  if (!(part.map == copy.map) || !(part.map.shape == copy.map.shape)) return false;
  for (const Use& u : uses_[v]) {
    const Expression& reader = out_.groups[u.group].expressions[static_cast<std::size_t>(u.expression)];
    if (reader.operands[u.operand].expression < 0 && &reader != &copy) return false;
  }
  for (GroupOutput& made : out_.groups[maker[v]].outputs)
    if (made.value == v && !made.window) {
      const Expression& e = out_.groups[maker[v]].expressions[static_cast<std::size_t>(made.expression)];
      if (e.of_rows || e.reduces) return false;
      made = {made.expression, output.value, true, output.layout};
      return true;
    }
  return false;
}

}  // namespace ferrite::detail
