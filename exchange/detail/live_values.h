#pragma once
/// Which values of a graph have to be written.
#include <algorithm>
#include <vector>

#include "ferrite/compile/graph.h"

namespace ferrite::exchange::detail {

/// What the outputs of a graph and its writes to variables depend on. `read` says which outputs are asked for; empty:
/// all.
class LiveValues {
 public:
  LiveValues(const Graph& g, const std::vector<bool>& read) : live_(g.values.size()) {
    for (std::size_t i = 0; i < g.outputs.size(); ++i)
      if (read.empty() || read[i]) live_[g.outputs[i]] = true;
    for (const Graph::VariableValue& w : g.writes) live_[w.value] = true;
    for (auto n = g.nodes.rbegin(); n != g.nodes.rend(); ++n)
      if (has(*n))
        for (const ValueId v : n->in) live_[v] = true;
  }

  bool operator[](ValueId v) const { return live_[v]; }
  /// Whether anything depends on a node.
  bool has(const Graph::Node& n) const {
    return std::any_of(n.out.begin(), n.out.end(), [&](ValueId v) { return live_[v]; });
  }

 private:
  std::vector<bool> live_;
};

}  // namespace ferrite::exchange::detail
