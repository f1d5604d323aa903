/// Gathers before computing: picks elements of the operands in place of those of a pointwise result.
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

constexpr int kMostDepth = 8;
constexpr std::int64_t kFewer = 4;  ///< so many times fewer elements must be picked than are there

/// Picks from the operands instead of from the result.
class Sinking {
 public:
  explicit Sinking(Graph& g) : g_(g), view_(g), old_(std::move(g.nodes)), to_(g.values.size()) { g_.nodes.clear(); }

  void run() {
    for (const Graph::Node& n : old_) {
      if (n.op == detail::ops::gather && few(n)) {
        gather_ = n;
        gather_.in[1] = to_[n.in[1]];
        to_.replace(n.out[0], picked(n.in[0], kMostDepth));
        continue;
      }
      g_.nodes.push_back(n);
      to_.apply(g_.nodes.back());
    }
    to_.apply_ends(g_);
  }

 private:
  bool few(const Graph::Node& n) const {
    return is_pointwise(n.in[0]) && g_.values[n.out[0]].shape.numel() * kFewer <= g_.values[n.in[0]].shape.numel();
  }
  bool is_pointwise(ValueId v) const {
    const std::size_t p = view_.producer(v);
    return p != detail::kNoNode && old_[p].op->is_pointwise();
  }

  /// The value at the picked places.
  ValueId picked(ValueId v, int depth) {
    const Spec spec = g_.values[v];
    const Shape index = g_.values[gather_.in[1]].shape;  // values grow meanwhile
    if (depth == 0 || !is_pointwise(v)) {
      return g_.add_node(*gather_.op, gather_.attrs, {to_[v], gather_.in[1]}, {index, spec.dtype}, gather_.scope);
    }
    const Graph::Node& n = old_[view_.producer(v)];
    Graph::Node smaller;
    smaller.op = n.op;
    smaller.attrs = n.attrs;
    smaller.scope = n.scope;
    for (const ValueId x : n.in) smaller.in.push_back(operand(x, spec.shape, depth));
    smaller.out.push_back(g_.add_value({index, spec.dtype}));
    g_.nodes.push_back(smaller);
    return smaller.out[0];
  }

  /// An operand that is the same along the axis needs no picking.
  ValueId operand(ValueId x, const Shape& shape, int depth) {
    if (g_.values[x].shape == shape) return picked(x, depth - 1);
    const Shape index = g_.values[gather_.in[1]].shape;  // values grow meanwhile
    const Shape own = g_.values[x].shape;
    const int axis = gather_.attrs.as<detail::AxisAttrs>("gather").axis;
    const int lead = shape.rank() - own.rank();
    bool same = axis < lead || own[axis - lead] == 1;
    for (int a = 0; a < shape.rank(); ++a) same = same && (a == axis || index[a] == shape[a]);
    if (same) return to_[x];
    const ValueId wide = g_.add_node(*detail::ops::expand, detail::ShapeAttrs{shape}, {to_[x]},
                                     {shape, g_.values[x].dtype}, gather_.scope);
    return g_.add_node(*gather_.op, gather_.attrs, {wide, gather_.in[1]}, {index, g_.values[x].dtype}, gather_.scope);
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<Graph::Node> old_;
  detail::Substitution to_;
  Graph::Node gather_;
};

}  // namespace

void sink_gathers(Graph& g) { Sinking(g).run(); }

}  // namespace ferrite::passes
