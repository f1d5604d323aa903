#include <algorithm>

#include "ferrite/compile/detail/fuser.h"
#include "ferrite/compile/detail/rewrite.h"

namespace ferrite::detail {

/// The parts of a concatenation or a stack are written where they belong, by the kernels that compute them.
void Fuser::visit_join(std::size_t i) {
  const Graph::Node& n = g_.nodes[i];
  const ValueId whole = n.out[0];
  if (!is_read(whole) || is_empty(whole)) return;
  const int axis = static_cast<int>(n.attrs.get<std::int64_t>("axis"));
  const bool stacked = n.op == records().stack;
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
      if (out_.groups[maker[v]].expressions[static_cast<std::size_t>(made.expression)].of_rows) return false;
      made = {made.expression, output.value, true, output.layout};
      return true;
    }
  return false;
}

}  // namespace ferrite::detail
