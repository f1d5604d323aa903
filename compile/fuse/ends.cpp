/// How a graph is made ready for fusion: results with a buffer of their own, copies right behind what they copy.
#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {

void materialize_ends(Graph& g) {
  const GraphView view(g);
  std::vector<ValueId> copy(g.values.size(), kNoValue);
  const auto ensure = [&](ValueId& v) {
    const Graph::Node* const n = view.node_of(v);
    if (n && !n->op->view && n->op != ops::pad) return;
    const Scope scope = n ? n->scope : Scope();
    if (copy[v] == kNoValue) copy[v] = g.add_node(*ops::contiguous, {}, {v}, Spec(g.values[v]), scope);
    v = copy[v];
  };
  for (ValueId& v : g.outputs) ensure(v);
  for (Graph::VariableValue& w : g.writes) ensure(w.value);
}

void move_copies_up(Graph& g) {
  std::vector<std::size_t> behind(g.values.size());  // by value: after how many nodes that stay it is there
  std::vector<std::size_t> place(g.nodes.size()), order(g.nodes.size());
  std::size_t stay = 0;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Graph::Node& n = g.nodes[i];
    const bool moves = n.op == ops::contiguous || n.op == ops::concat || n.op == ops::stack;
    std::size_t at = moves ? 0 : ++stay;
    if (moves)
      for (const ValueId v : n.in) at = std::max(at, behind[v]);
    for (const ValueId v : n.out) behind[v] = at;
    place[i] = 2 * at + (moves ? 1 : 0);
    order[i] = i;
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return place[i]; });
  std::vector<Graph::Node> nodes;
  nodes.reserve(order.size());
  for (const std::size_t i : order) nodes.push_back(std::move(g.nodes[i]));
  g.nodes = std::move(nodes);
}

}  // namespace ferrite::detail
