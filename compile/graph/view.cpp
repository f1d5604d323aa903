/// The index over a graph, and what depends on which of its values.
#include "ferrite/compile/graph/view.h"

#include <algorithm>

#include "ferrite/compile/graph/rewrite.h"

namespace ferrite::detail {

GraphView::GraphView(const Graph& g) : graph_(&g), values_(g.values.size()) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Graph::Node& n = g.nodes[i];
    for (const ValueId v : n.in) {
      ++values_[v].uses;
      values_[v].last_user = i;
    }
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      values_[n.out[k]].producer = i;
      values_[n.out[k]].result = k;
    }
  }
  const auto end = [&](ValueId v) {
    ++values_[v].uses;
    values_[v].end = true;
  };
  for (const ValueId v : g.outputs) end(v);
  for (const Graph::VariableValue& w : g.writes) end(w.value);
}

std::vector<char> mark_needed(const Graph& g, std::vector<char>& values, const std::function<bool(std::size_t)>& among,
                              bool pure) {
  std::vector<char> nodes(g.nodes.size());
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Graph::Node& n = g.nodes[i];
    if (among && !among(i)) continue;
    nodes[i] = std::any_of(n.out.begin(), n.out.end(), [&](ValueId v) { return values[v] != 0; }) ||
               (!pure && effects_of(g, n).must_run());
    if (nodes[i])
      for (const ValueId v : n.in) values[v] = true;
  }
  return nodes;
}

void mark_dependents(const Graph& g, std::vector<char>& values) {
  for (const Graph::Node& n : g.nodes) {
    char all = 0;
    for (const ValueId v : n.in) all = static_cast<char>(all | values[v]);
    for (const ValueId v : n.out) values[v] = static_cast<char>(values[v] | all);
  }
}

}  // namespace ferrite::detail
