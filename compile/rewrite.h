#pragma once
/// Helpers of the passes over graphs: replacing values, effects of nodes, comparing programs.
#include <numeric>

#include "ferrite/compile/graph_view.h"
#include "ferrite/tensor/operations.h"

namespace ferrite::detail {

/// The values that replace others while a pass rewrites a graph.
class Substitution {
 public:
  explicit Substitution(std::size_t values) : to_(values) { std::iota(to_.begin(), to_.end(), ValueId{0}); }
  ValueId operator[](ValueId v) const { return v < to_.size() ? to_[v] : v; }
  /// Replaces v by `by` from now on. `by` must have been looked up already.
  void replace(ValueId v, ValueId by) { to_[v] = by; }
  void apply(Graph::Node& n) const {
    for (ValueId& v : n.in) v = (*this)[v];
  }
  /// Replaces outputs and values written to variables.
  void apply_ends(Graph& g) const {
    for (ValueId& v : g.outputs) v = (*this)[v];
    for (Graph::VariableValue& w : g.writes) w.value = (*this)[w.value];
  }

 private:
  std::vector<ValueId> to_;
};

/// Rewrites the nodes of a graph in order: `each` gets a node with its operands replaced, and adds what takes its place
/// to the graph.
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

/// Adds the constants and nodes of `part` to the graph g, with the values `inputs` in place of its inputs; returns its
/// outputs. Nodes without a layer get the layer `scope`.
std::vector<ValueId> splice(Graph& g, const Graph& part, std::span<const ValueId> inputs, Scope scope);

/// Returns the body of an application; null if it runs none.
const Body* find_body(const Attrs& attrs);

/// Returns the effects of an application to operands of these types, including those of the body that it runs.
Effects effects_of(const Primitive& op, std::span<const Spec> in, const Attrs& attrs);
/// Returns the effects of a node.
Effects effects_of(const Graph& g, const Graph::Node& n);
/// Returns the effects of all nodes of a graph.
Effects effects_of(const Graph& g);
/// Returns whether two graphs have the same nodes and constants, bit for bit.
bool same_graph(const Graph& a, const Graph& b);
/// Returns whether two constants have the same type and bits.
bool same_constant(const Tensor& a, const Tensor& b);
/// Describes where graph `is` first differs from graph `was`; empty if it does not.
std::string first_difference(const Graph& was, const Graph& is);

}  // namespace ferrite::detail
