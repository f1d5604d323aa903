/// What groups and their maps are asked for: live expressions, order in memory, kernels.
#include "ferrite/compile/fuse/fusion.h"

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

}  // namespace ferrite::detail
