/// Affine maps from a domain to the elements of values, through views, paddings and reshapes.
#include "ferrite/compile/fuse/index_map.h"

#include <algorithm>

#include "ferrite/compile/rewrite.h"

namespace ferrite::detail {
namespace {

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }
std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return -floor_div(-a, b); }

/// Computes the strides and the offset of a view of an operand with these strides.
bool probe(const Graph& g, const Graph::Node& n, std::size_t result, const Shape& strides, Layout& layout) {
  const Tensor x = Tensor::abstract(g.values[n.in[0]]);
  x.impl()->strides = strides;
  x.impl()->contiguous = false;
  return n.op->view(x, g.values[n.out[result]], n.attrs, result, layout);
}

}  // namespace

IndexMap IndexMap::identity(const Shape& shape) {
  IndexMap m;
  m.shape = shape;
  for (int i = 0; i < shape.rank(); ++i) {
    m.offset.push_back(0);
    m.axis.push_back(i);
    m.coefficient.push_back(1);
  }
  return m;
}

std::optional<ViewRule> rule_of_view(const Graph& g, const Graph::Node& n, std::size_t result) {
  if (!n.op->view || n.op == ops::reshape || n.in.size() != 1) return {};
  const Shape& in = g.values[n.in[0]].shape;
  const int axes = g.values[n.out[result]].shape.rank();
  ViewRule r{in, {}, Shape::filled(axes, -1), Shape::filled(axes, 0)};
  for (int a = 0; a < in.rank(); ++a) {
    Shape unit = Shape::filled(in.rank(), 0);
    unit[a] = 1;
    Layout layout;
    if (!probe(g, n, result, unit, layout)) return {};
    r.offset.push_back(layout.offset);
    for (int j = 0; j < axes; ++j) {
      if (layout.strides[j] == 0) continue;
      if (r.axis[j] >= 0) return {};
      r.axis[j] = a;
      r.coefficient[j] = layout.strides[j];
    }
  }
  return r;
}

IndexMap through(const IndexMap& view, const ViewRule& rule) {
  IndexMap m;
  m.shape = rule.in;
  m.offset = rule.offset;
  for (int j = 0; j < rule.axis.rank(); ++j)
    if (rule.axis[j] >= 0) m.offset[static_cast<int>(rule.axis[j])] += rule.coefficient[j] * view.offset[j];
  for (int k = 0; k < view.axis.rank(); ++k) {
    const std::int64_t j = view.axis[k];
    const std::int64_t a = j < 0 ? -1 : rule.axis[static_cast<int>(j)];
    m.axis.push_back(a);
    m.coefficient.push_back(a < 0 ? 0 : view.coefficient[k] * rule.coefficient[static_cast<int>(j)]);
  }
  return m;
}

IndexMap through_broadcast(const IndexMap& result, const Shape& operand) {
  if (operand == result.shape) return result;
  const int lead = result.shape.rank() - operand.rank();
  IndexMap m;
  m.shape = operand;
  const auto repeated = [&](std::int64_t a) {
    return a < lead || (operand[static_cast<int>(a) - lead] == 1 && result.shape[static_cast<int>(a)] != 1);
  };
  for (int a = lead; a < result.shape.rank(); ++a) m.offset.push_back(repeated(a) ? 0 : result.offset[a]);
  for (int k = 0; k < result.axis.rank(); ++k) {
    const std::int64_t a = result.axis[k];
    const bool none = a < 0 || repeated(a);
    m.axis.push_back(none ? -1 : a - lead);
    m.coefficient.push_back(none ? 0 : result.coefficient[k]);
  }
  return m;
}

IndexMap through_pad(const IndexMap& padded, const Shape& before, const Shape& operand) {
  IndexMap m = padded;
  m.shape = operand;
  for (int a = 0; a < operand.rank(); ++a) m.offset[a] -= before[a];
  return m;
}

// ---- cutting axes --------------------------------------------------------------------------------------

namespace {

bool can_cut(const Box& box, int k, std::int64_t extent, std::int64_t inner) {
  const bool whole = box.begin[k] == 0 && box.end[k] == extent;
  return whole || (box.begin[k] % inner == 0 && box.end[k] % inner == 0);
}

void cut_box(Box& box, int k, std::int64_t inner) {
  box.begin[k] /= inner;
  box.end[k] /= inner;
  box.begin.insert(k + 1, 0);
  box.end.insert(k + 1, inner);
}

void cut_map(IndexMap& m, int k, std::int64_t inner) {
  m.axis.insert(k + 1, m.axis[k]);
  m.coefficient.insert(k + 1, m.coefficient[k]);
  m.coefficient[k] *= inner;
}

}  // namespace

bool Domain::cut(int k, std::int64_t inner, const Followers& followers) {
  if (extents_.rank() == Shape::kMaxRank || extents_[k] % inner != 0) return false;
  for (const Box* b : followers.boxes)
    if (!can_cut(*b, k, extents_[k], inner)) return false;
  for (Box* b : followers.boxes) cut_box(*b, k, inner);
  for (IndexMap* m : followers.maps) cut_map(*m, k, inner);
  extents_[k] /= inner;
  extents_.insert(k + 1, inner);
  if (k < outer_) ++outer_;
  return true;
}

std::int64_t Domain::row_elements() const {
  std::int64_t n = 1;
  for (int k = outer_; k < extents_.rank(); ++k) n *= extents_[k];
  return n;
}

void Domain::append(std::int64_t extent, const Followers& followers) {
  extents_.push_back(extent);
  for (IndexMap* m : followers.maps) {
    m->axis.push_back(-1);
    m->coefficient.push_back(0);
  }
  for (Box* b : followers.boxes) {
    b->begin.push_back(0);
    b->end.push_back(extent);
  }
}

bool is_of_rows(const IndexMap& map, const Domain& domain) {
  if (!domain.has_rows()) return false;
  for (int k = domain.outer(); k < domain.extents().rank(); ++k)
    if (map.axis[k] >= 0) return false;
  return true;
}

// ---- reshapes ------------------------------------------------------------------------------------------

namespace {

/// A map as one affine function of the domain: the position in row-major order of the view's shape. Axes of extent 1
/// add nothing: an index beyond them lies in a padding, where the value does not matter.
struct Linear {
  std::int64_t offset = 0;
  Shape coefficient;  ///< for each axis of the domain
};

Linear linear(const IndexMap& m) {
  Linear l;
  const Shape strides = m.shape.strides();
  const auto counts = [&](std::int64_t a) { return a >= 0 && m.shape[static_cast<int>(a)] != 1; };
  for (int a = 0; a < m.shape.rank(); ++a) l.offset += counts(a) ? strides[a] * m.offset[a] : 0;
  for (int k = 0; k < m.axis.rank(); ++k)
    l.coefficient.push_back(counts(m.axis[k]) ? m.coefficient[k] * strides[static_cast<int>(m.axis[k])] : 0);
  return l;
}

/// Distributes the terms of a linear position over the axes of another shape, outermost first.
class Dealing {
 public:
  Dealing(const Linear& l, const Shape& extents, const Shape& operand)
      : left_(l), extents_(extents), strides_(operand.strides()) {
    map_.shape = operand;
    map_.offset = Shape::filled(operand.rank(), 0);
    map_.axis = Shape::filled(extents.rank(), -1);
    map_.coefficient = Shape::filled(extents.rank(), 0);
  }

  /// Returns false if an axis of the domain must be cut first (see `axis` and `inner`), or there is no such map (inner
  /// = 0).
  bool run() {
    for (int a = 0; a < map_.shape.rank(); ++a)
      if (!deal(a)) return false;
    return left_.offset == 0;
  }
  const IndexMap& map() const { return map_; }
  int axis = -1;
  std::int64_t inner = 0;

 private:
  bool deal(int a) {
    if (map_.shape[a] == 1) return true;
    const std::int64_t stride = strides_[a];
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (int k = 0; k < extents_.rank(); ++k) {
      const std::int64_t c = left_.coefficient[k];
      if (c == 0 || c % stride == 0) continue;
      (c < 0 ? low : high) += c * (extents_[k] - 1);
    }
    const std::int64_t whole = floor_div(left_.offset + low, stride);
    if (left_.offset - whole * stride + high >= stride) return find_cut(stride);
    map_.offset[a] = whole;
    left_.offset -= whole * stride;
    for (int k = 0; k < extents_.rank(); ++k) {
      const std::int64_t c = left_.coefficient[k];
      if (c == 0 || c % stride != 0) continue;
      map_.axis[k] = a;
      map_.coefficient[k] = c / stride;
      left_.coefficient[k] = 0;
    }
    return true;
  }

  bool find_cut(std::int64_t stride) {
    for (int k = 0; k < extents_.rank(); ++k) {
      const std::int64_t c = left_.coefficient[k] < 0 ? -left_.coefficient[k] : left_.coefficient[k];
      if (c == 0 || stride % c != 0 || c == stride) continue;
      const std::int64_t part = stride / c;
      if (part >= extents_[k] || extents_[k] % part != 0) continue;
      axis = k;
      inner = part;
      return false;
    }
    return false;
  }

  Linear left_;
  const Shape extents_;
  Shape strides_;
  IndexMap map_;
};

}  // namespace

std::optional<IndexMap> through_reshape(Domain& domain, Followers followers, const IndexMap& view,
                                        const Shape& operand) {
  IndexMap seen = view;
  followers.maps.push_back(&seen);
  for (;;) {
    Dealing dealing(linear(seen), domain.extents(), operand);
    if (dealing.run()) return dealing.map();
    if (dealing.inner == 0 || !domain.cut(dealing.axis, dealing.inner, followers)) return {};
  }
}

void settle(IndexMap& map, const Shape& extents) {
  for (int a = 0; a < map.shape.rank(); ++a)
    if (map.shape[a] == 1) map.offset[a] = 0;
  for (int k = 0; k < extents.rank(); ++k) {
    const auto a = static_cast<int>(map.axis[k]);
    if (a >= 0 && extents[k] != 1 && map.shape[a] != 1) continue;
    map.axis[k] = -1;
    map.coefficient[k] = 0;
  }
}

// ---- validity ------------------------------------------------------------------------------------------

std::optional<Box> valid(const IndexMap& map, const Shape& extents) {
  Box box = whole_box(extents);
  for (int a = 0; a < map.shape.rank(); ++a) {
    std::int64_t low = map.offset[a];
    std::int64_t high = map.offset[a];
    int moving = -1;
    int terms = 0;
    for (int k = 0; k < extents.rank(); ++k) {
      if (map.axis[k] != a || extents[k] == 1) continue;
      (map.coefficient[k] < 0 ? low : high) += map.coefficient[k] * (extents[k] - 1);
      moving = k;
      ++terms;
    }
    if (low >= 0 && high < map.shape[a]) continue;
    if (high < 0 || low >= map.shape[a]) {  // valid nowhere
      box.end = box.begin;
      if (extents.rank() == 0) return {};
      return box;
    }
    if (terms != 1) return {};
    const std::int64_t c = map.coefficient[moving];
    const std::int64_t to_first = -map.offset[a];                   // c i >= to_first
    const std::int64_t to_last = map.shape[a] - 1 - map.offset[a];  // c i <= to_last
    const std::int64_t first = c > 0 ? ceil_div(to_first, c) : ceil_div(to_last, c);
    const std::int64_t last = c > 0 ? floor_div(to_last, c) : floor_div(to_first, c);
    box.begin[moving] = std::max(box.begin[moving], first);
    box.end[moving] = std::max(box.begin[moving], std::min(box.end[moving], last + 1));
  }
  return box;
}

bool is_valid_in(const IndexMap& map, const Box& box) {
  Shape low = map.offset;
  Shape high = map.offset;
  for (int k = 0; k < map.axis.rank(); ++k) {
    if (box.begin[k] >= box.end[k]) return true;  // the box is empty
    const int a = static_cast<int>(map.axis[k]);
    if (a < 0) continue;
    const std::int64_t first = map.coefficient[k] * box.begin[k];
    const std::int64_t last = map.coefficient[k] * (box.end[k] - 1);
    low[a] += std::min(first, last);
    high[a] += std::max(first, last);
  }
  for (int a = 0; a < map.shape.rank(); ++a)
    if (low[a] < 0 || high[a] >= map.shape[a]) return false;
  return true;
}

Box hull(const Box& a, const Box& b) {
  Box h = a;
  for (int k = 0; k < a.begin.rank(); ++k) {
    h.begin[k] = std::min(a.begin[k], b.begin[k]);
    h.end[k] = std::max(a.end[k], b.end[k]);
  }
  return h;
}

Box whole_box(const Shape& extents) { return {Shape::filled(extents.rank(), 0), extents}; }

bool is_whole(const Box& box, const Shape& extents) {
  for (int k = 0; k < extents.rank(); ++k)
    if (box.begin[k] != 0 || box.end[k] != extents[k]) return false;
  return true;
}

}  // namespace ferrite::detail
