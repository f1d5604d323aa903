/// Which group may compute a value, and what speaks against it.
#include "ferrite/compile/fuse/detail/placement.h"

#include <algorithm>

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

Placement no(const std::string& why) {
  Placement p;
  p.refusal = why;
  return p;
}

/// The different views through which a group reads v.
std::vector<const IndexMap*> maps_in(const Groups& groups, ValueId v, std::size_t at) {
  std::vector<const IndexMap*> maps;
  for (const Groups::Use& u : groups.uses(v)) {
    if (u.group != at) continue;
    const IndexMap& map = groups.operand(u).map;
    if (std::none_of(maps.begin(), maps.end(), [&](const IndexMap* m) { return *m == map; })) maps.push_back(&map);
  }
  return maps;
}

/// Whether a group reads v through views that together are not larger than v, so that computing each part where it is
/// read costs nothing: the gates in the columns of one product.
bool covers_in_parts(const Groups& groups, ValueId v, std::size_t at) {
  const Domain& domain = groups[at].domain;
  if (domain.has_rows()) return false;
  for (const Groups::Use& u : groups.uses(v))
    if (u.group == at && !is_whole(groups.operand(u).region, domain.extents())) return false;
  const auto parts = static_cast<std::int64_t>(maps_in(groups, v, at).size());
  return parts * domain.extents().numel() <= groups.view().spec(v).shape.numel();
}

/// Whether these views are neighbouring slices along one axis that make up all of v: then the kernel that computes the
/// parts also writes v.
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
  // Repeated along an axis, or mostly padding: computing it once and reading it costs less.
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

}  // namespace ferrite::detail
