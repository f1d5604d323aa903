#pragma once
/// An index over a graph: which node computes a value, who reads it, what it is a view of, and what depends on it.
#include <functional>
#include <limits>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// The value number that means "no value".
inline constexpr ValueId kNoValue = ~ValueId{0};
/// The node position that means "no node".
inline constexpr std::size_t kNoNode = std::numeric_limits<std::size_t>::max();

/// The producers and users of a graph's values as they were when the view was made. Values added since have neither.
class GraphView {
 public:
  explicit GraphView(const Graph& g);

  const Graph& graph() const { return *graph_; }
  const Spec& spec(ValueId v) const { return graph_->values[v]; }

  /// Returns the position of the node that computes a value; kNoNode for inputs, constants and values of variables.
  std::size_t producer(ValueId v) const { return v < values_.size() ? values_[v].producer : kNoNode; }
  /// Returns the node that computes a value, or null.
  const Graph::Node* node_of(ValueId v) const {
    const std::size_t p = producer(v);
    return p == kNoNode ? nullptr : &graph_->nodes[p];
  }
  /// Returns the index of a value among its producer's results.
  std::size_t result(ValueId v) const { return values_[v].result; }
  /// Returns how often a value is read: by nodes, as an output, and as a new value of a variable.
  std::size_t uses(ValueId v) const { return values_[v].uses; }
  /// Returns the position of the last node that reads a value; kNoNode if there is none.
  std::size_t last_user(ValueId v) const { return values_[v].last_user; }
  /// Returns whether a value is an output of the program or written to a variable.
  bool is_end(ValueId v) const { return values_[v].end; }

  /// Returns the value that v is a view of, following those producers for which `is_view(node position)` holds.
  template <class IsView>
  ValueId root(ValueId v, IsView is_view) const {
    for (std::size_t p = producer(v); p != kNoNode && is_view(p); p = producer(v)) v = graph_->nodes[p].in[0];
    return v;
  }
  /// Returns the value that v is a view of, following all views.
  ValueId root(ValueId v) const {
    return root(v, [this](std::size_t p) { return graph_->nodes[p].op->view != nullptr; });
  }

 private:
  struct Value {
    std::size_t producer = kNoNode, result = 0, uses = 0, last_user = kNoNode;
    bool end = false;
  };
  const Graph* graph_;
  std::vector<Value> values_;
};

/// Returns, by node, which nodes must run to compute the marked values, and marks the values that these nodes read.
/// With `among`, only nodes for which it holds are considered. Nodes that must run even if they are not read count
/// unless `pure` is set.
std::vector<char> mark_needed(const Graph& g, std::vector<char>& values,
                              const std::function<bool(std::size_t)>& among = {}, bool pure = false);

/// Propagates the marks of values to all values computed from them: results get the bits of all their operands in
/// addition to their own.
void mark_dependents(const Graph& g, std::vector<char>& values);

}  // namespace ferrite::detail
