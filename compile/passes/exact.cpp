/// Removes operations that change no bit: neutral elements, views of everything, pairs that cancel.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ferrite/autograd/custom_gradient.h"
#include "ferrite/compile/graph/graph_text.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"

namespace ferrite::passes {
namespace {

/// One pass over the nodes in order; what a node's result equals is decided from nodes before it.
class Simplifying {
 public:
  explicit Simplifying(Graph& g) : g_(g), view_(g), to_(g.values.size()), known_(g.values.size()) {
    for (const Graph::Constant& c : g.constants) known_[c.value] = &c.tensor;
  }

  void run() {
    for (Graph::Node& n : g_.nodes) {
      to_.apply(n);
      if (n.out.size() != 1) continue;
      if (const std::optional<ValueId> same = equal_to(n)) to_.replace(n.out[0], *same);
    }
    to_.apply_ends(g_);
  }

 private:
  /// The value that the node's result equals to the bit, in shape too.
  std::optional<ValueId> equal_to(const Graph::Node& n) const {
    if (n.in.empty()) return {};
    const ValueId x = n.in[0];
    if (n.op == detail::ops::contiguous) return x;
    if ((n.op == detail::ops::reshape || n.op == detail::ops::expand) && same_type(x, n)) return x;
    if (n.op == detail::ops::permute && in_order(n.attrs.as<detail::PermuteAttrs>().order)) return x;
    if (n.op == detail::ops::cast) return cast_back(n);
    if (n.op == detail::ops::neg) return operand_of(x, detail::ops::neg);  // turns the sign bit, of zeros and NaN too
    if (n.op == detail::ops::mul) return neutral(n, 1.0, true);
    if (n.op == detail::ops::div) return neutral(n, 1.0, false);
    if (n.op == detail::ops::add) return neutral(n, -0.0, true);
    if (n.op == detail::ops::sub) return neutral(n, 0.0, false);
    return {};
  }

  bool same_type(ValueId v, const Graph::Node& n) const { return g_.values[v] == g_.values[n.out[0]]; }

  static bool in_order(const Shape& order) {
    for (int i = 0; i < order.rank(); ++i)
      if (order[i] != i) return false;
    return true;
  }

  std::optional<ValueId> operand_of(ValueId v, const Primitive* op) const {
    const Graph::Node* n = view_.node_of(v);
    if (!n || n->op != op) return {};
    return n->in[0];
  }

  /// To a wider type and back.
  std::optional<ValueId> cast_back(const Graph::Node& n) const {
    const std::optional<ValueId> x = operand_of(n.in[0], n.op);
    if (!x || !same_type(*x, n)) return {};
    const Dtype narrow = g_.values[*x].dtype;
    const Dtype wide = g_.values[n.in[0]].dtype;
    const bool exact = (narrow == Dtype::f32 && wide == Dtype::f64) || (narrow == Dtype::i32 && wide == Dtype::i64) ||
                       (narrow == Dtype::i32 && wide == Dtype::f64) || narrow == Dtype::boolean;
    return exact ? x : std::nullopt;
  }

  /// x where the other operand is the neutral element (by its bits) and does not change the shape. Integers have no -0.
  std::optional<ValueId> neutral(const Graph::Node& n, double element, bool commutes) const {
    if (!is_float(g_.values[n.out[0]].dtype)) return {};
    const auto is_neutral = [&](double v) { return v == element && std::signbit(v) == std::signbit(element); };
    if (n.in.size() == 1) {
      const Scalar* const first = detail::literal_of(n.attrs, 0);
      const Scalar* const second = detail::literal_of(n.attrs, 1);
      const Scalar* const literal = second ? second : commutes ? first : nullptr;
      return literal && is_neutral(literal->real()) ? std::optional(n.in[0]) : std::nullopt;
    }
    if (n.in.size() != 2) return {};
    if (same_type(n.in[0], n) && repeats(n.in[1], is_neutral)) return n.in[0];
    if (commutes && same_type(n.in[1], n) && repeats(n.in[0], is_neutral)) return n.in[1];
    return {};
  }

  bool repeats(ValueId v, const auto& wanted) const {
    const Tensor* t = known_[v];
    if (!t || !detail::one_value(*t)) return false;
    return wanted(t->dtype() == Dtype::f32 ? static_cast<double>(*t->data<float>()) : *t->data<double>());
  }

  Graph& g_;
  detail::GraphView view_;
  detail::Substitution to_;
  std::vector<const Tensor*> known_;  ///< by value: constants
};

}  // namespace

void simplify_exactly(Graph& g) { Simplifying(g).run(); }

namespace {

/// Nodes whose results are their last operands, as far as they are to go.
template <class Goes>
void drop(Graph& g, const Goes& goes) {
  if (std::ranges::none_of(g.nodes, goes)) return;
  detail::Substitution to(g.values.size());
  detail::rewrite_nodes(g, to, [&](Graph::Node& n) {
    if (!goes(n)) return g.nodes.push_back(std::move(n));
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], n.in[n.in.size() - n.out.size() + k]);
  });
}

}  // namespace

void drop_detach(Graph& g) {
  drop(g, [](const Graph::Node& n) { return n.op == detail::ops::detach || detail::is_custom_gradient(*n.op); });
}

void drop_recompute(Graph& g) {
  drop(g, [](const Graph::Node& n) { return n.op == &detail::recompute_primitive(); });
}

void simplify(Graph& g) {
  expand_composites(g);
  remove_dead_code(g);
  simplify_scans(g);
  fold_constants(g);
  simplify_exactly(g);
  join_padded_sums(g);
  sink_gathers(g);
  merge_common_subexpressions(g);
  remove_dead_code(g);
}

}  // namespace ferrite::passes
