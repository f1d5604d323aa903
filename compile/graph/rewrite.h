#pragma once
/// What passes over graphs share: replacing values, effects of nodes, comparing programs.
#include <numeric>

#include "ferrite/compile/graph/view.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {

/// Which value stands for which while a pass rewrites a graph.
class Substitution {
 public:
  explicit Substitution(std::size_t values) : to_(values) { std::iota(to_.begin(), to_.end(), ValueId{0}); }
  ValueId operator[](ValueId v) const { return v < to_.size() ? to_[v] : v; }
  /// From now on `by` stands for v. `by` must have been looked up already.
  void replace(ValueId v, ValueId by) { to_[v] = by; }
  void apply(Graph::Node& n) const {
    for (ValueId& v : n.in) v = (*this)[v];
  }
  /// Outputs and variables written.
  void apply_ends(Graph& g) const {
    for (ValueId& v : g.outputs) v = (*this)[v];
    for (Graph::VariableValue& w : g.writes) w.value = (*this)[w.value];
  }

 private:
  std::vector<ValueId> to_;
};

/// Rewrites the nodes of a graph in order: `each` gets a node with its operands replaced, and adds to the graph what
/// takes its place.
template <class Each>
void rewrite_nodes(Graph& g, Substitution& to, Each each) {
  std::vector<Graph::Node> nodes = std::move(g.nodes);
  g.nodes.clear();
  for (Graph::Node& n : nodes) {
    to.apply(n);
    each(n);
  }
  to.apply_ends(g);
}

/// Adds the constants and nodes of another graph to a graph, where these values stand for its inputs; gives its
/// outputs. Its nodes belong to the layer `scope` where they have none.
std::vector<ValueId> splice(Graph& g, const Graph& part, std::span<const ValueId> inputs, Scope scope);

/// The body of an application; null for one that runs none.
inline const Body* find_body(const Attrs& attrs) { return dynamic_cast<const Body*>(attrs.body.get()); }

/// The effects of an application to operands of these types, of the body that it runs among them.
Effects effects_of(const Primitive& op, std::span<const Spec> in, const Attrs& attrs);
/// Those of a node.
Effects effects_of(const Graph& g, const Graph::Node& n);
/// Those of all nodes of a graph.
Effects effects_of(const Graph& g);
/// Whether two graphs have the same nodes and constants, to the bit.
bool same_graph(const Graph& a, const Graph& b);
/// Whether two constants have the same type and bits.
bool same_constant(const Tensor& a, const Tensor& b);
/// Where a graph first differs from what it was, in words; empty where it does not.
std::string first_difference(const Graph& was, const Graph& is);

}  // namespace ferrite::detail
