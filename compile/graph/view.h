#pragma once
/// An index over a graph: which node computes a value, who reads it, what it is a view of, and what depends on it.
#include <functional>
#include <limits>

#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// Stands for no value.
inline constexpr ValueId kNoValue = ~ValueId{0};
/// Stands for no node.
inline constexpr std::size_t kNoNode = std::numeric_limits<std::size_t>::max();

/// The producers and users of a graph's values as they were when the view was made. Values added since have neither.
class GraphView {
 public:
  explicit GraphView(const Graph& g);

  const Graph& graph() const { return *graph_; }
  const Spec& spec(ValueId v) const { return graph_->values[v]; }

  /// The position of the node that computes a value; kNoNode for inputs, constants and what variables hold.
  std::size_t producer(ValueId v) const { return v < values_.size() ? values_[v].producer : kNoNode; }
  /// That node, or null.
  const Graph::Node* node_of(ValueId v) const {
    const std::size_t p = producer(v);
    return p == kNoNode ? nullptr : &graph_->nodes[p];
  }
  /// Which of its producer's results a value is.
  std::size_t result(ValueId v) const { return values_[v].result; }
  /// How often a value is read: by nodes, as an output, and as what a variable is given.
  std::size_t uses(ValueId v) const { return values_[v].uses; }
  /// The last node that reads a value; kNoNode where none does.
  std::size_t last_user(ValueId v) const { return values_[v].last_user; }
  /// Whether a value is an output of the program or written to a variable.
  bool is_end(ValueId v) const { return values_[v].end; }

  /// What a value is a view of, through those producers for which `is_view(node position)` holds.
  template <class IsView>
  ValueId root(ValueId v, IsView is_view) const {
    for (std::size_t p = producer(v); p != kNoNode && is_view(p); p = producer(v)) v = graph_->nodes[p].in[0];
    return v;
  }
  /// The same through all views.
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

/// Which nodes run so that the values marked are there: by node. Marks what these read, too. Of the nodes `among` only,
/// where that is given. A node that must run though nobody reads it counts unless `pure`.
std::vector<char> mark_needed(const Graph& g, std::vector<char>& values,
                              const std::function<bool(std::size_t)>& among = {}, bool pure = false);

/// Hands the marks of values on to what is computed from them: results get the bits of all their operands, beside their
/// own.
void mark_dependents(const Graph& g, std::vector<char>& values);

}  // namespace ferrite::detail
