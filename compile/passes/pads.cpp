/// Replaces sums of zero-padded pieces that are side by side by one concatenation.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

/// Pieces along one axis with zeros between.
struct Pieces {
  struct Piece {
    std::int64_t begin, end;
    ValueId value;
  };
  int axis = 0;
  std::vector<Piece> list;  ///< ascending, disjoint
};

/// A value padded with zeros along one axis only.
std::optional<Pieces> padded(const Graph& g, const Graph::Node& n) {
  if (n.op != detail::ops::pad || !is_float(g.values[n.out[0]].dtype)) return {};
  const auto [before, after, fill] = n.attrs.as<detail::PadAttrs>();
  if (fill.real() != 0 || std::signbit(fill.real())) return {};
  Pieces p;
  int axes = 0;
  for (int i = 0; i < before.rank(); ++i) {
    if (before[i] < 0 || after[i] < 0) return {};
    if (before[i] == 0 && after[i] == 0) continue;
    p.axis = i;
    ++axes;
  }
  if (axes != 1) return {};
  const std::int64_t extent = g.values[n.in[0]].shape[p.axis];
  p.list.push_back({before[p.axis], before[p.axis] + extent, n.in[0]});
  return p;
}

std::optional<Pieces> joined(const Pieces& a, const Pieces& b) {
  if (a.axis != b.axis) return {};
  Pieces all = a;
  all.list.insert(all.list.end(), b.list.begin(), b.list.end());
  std::sort(all.list.begin(), all.list.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
  for (std::size_t i = 1; i < all.list.size(); ++i)
    if (all.list[i].begin < all.list[i - 1].end) return {};
  return all;
}

class Joining {
 public:
  explicit Joining(Graph& g)
      : g_(g),
        view_(g),
        pieces_(g.values.size()),
        sum_(g.values.size()),
        absorbed_(g.values.size()),
        to_(g.values.size()) {}

  void run() {
    find();
    detail::rewrite_nodes(g_, to_, [&](Graph::Node& n) {
      const ValueId v = n.out[0];
      if (!sum_[v] || absorbed_[v]) return g_.nodes.push_back(std::move(n));
      to_.replace(v, concatenation(*pieces_[v], Spec(g_.values[v]), n.scope));
    });
  }

 private:
  void find() {
    for (const Graph::Node& n : g_.nodes) {
      const ValueId v = n.out[0];
      if (std::optional<Pieces> p = padded(g_, n)) pieces_[v] = std::move(p);
      if (n.op != detail::ops::add || n.in.size() != 2) continue;
      const ValueId a = n.in[0];
      const ValueId b = n.in[1];
      if (!pieces_[a] || !pieces_[b] || view_.uses(a) != 1 || view_.uses(b) != 1 || g_.values[a] != g_.values[b])
        continue;
      pieces_[v] = joined(*pieces_[a], *pieces_[b]);
      if (!pieces_[v]) continue;
      sum_[v] = true;
      absorbed_[a] = absorbed_[b] = true;
    }
  }

  ValueId concatenation(const Pieces& p, const Spec& spec, Scope scope) {
    Graph::Node n;
    n.scope = scope;
    n.op = detail::ops::concat;
    n.attrs = detail::AxisAttrs{p.axis};
    std::int64_t at = 0;
    const auto gap = [&](std::int64_t end) {
      if (at < end) n.in.push_back(zeros_of(spec, p.axis, end - at));
    };
    for (const Pieces::Piece& piece : p.list) {
      gap(piece.begin);
      const ValueId x = to_[piece.value];
      n.in.push_back(
          g_.add_node(*detail::ops::add, detail::Literals{.b = Scalar(0.0)}, {x}, Spec(g_.values[x]), scope));
      at = piece.end;
    }
    gap(spec.shape[p.axis]);
    if (n.in.size() == 1) return n.in[0];
    const ValueId v = g_.add_value(spec);
    n.out.push_back(v);
    g_.nodes.push_back(std::move(n));
    return v;
  }

  ValueId zeros_of(const Spec& spec, int axis, std::int64_t extent) {
    Spec s = spec;
    s.shape[axis] = extent;
    const Tensor zero = visit_dtype(s.dtype, [](auto z) {
      using T = decltype(z);
      return Tensor::build<T>({}, [](std::span<T> to) { to[0] = T(0); });
    });
    return g_.add_constant(zero.view(s.shape, Shape::filled(s.shape.rank(), 0), 0));
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<std::optional<Pieces>> pieces_;
  std::vector<char> sum_;       ///< the value is a sum of such pieces
  std::vector<char> absorbed_;  ///< and part of a larger one
  detail::Substitution to_;
};

}  // namespace

void join_padded_sums(Graph& g) { Joining(g).run(); }

}  // namespace ferrite::passes
