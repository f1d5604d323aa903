#pragma once
/// What a layer computes of a sequence, with the layers that it calls.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/nn/detail/steps.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn::detail {

/// A call of a layer inside another.
struct TracedCall {
  const Layer* layer = nullptr;
  ValueId x = 0, y = 0;
  std::size_t end = 0;  ///< the calls inside it are those up to there
  bool plain = false;   ///< without lengths, resets and states
};

/// A layer's program on so many steps of x [B, T, D], tokens [B, T].
struct TracedLayer {
  Graph graph;
  std::vector<TracedCall> calls;  ///< by when they began

  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps);
};

/// The program of a layer, cut at the calls of layers that have steps of their own: those become nodes of a graph of
/// steps, what stands between them programs.
class CutLayer {
 public:
  /// Maps a variable of the layer to the one that a stream follows; null: itself.
  using Originals = std::function<Variable(const Variable&)>;

  /// The layer is in evaluation mode. `more` is its program on one row and some steps more. Throws ValueError where the
  /// two differ.
  CutLayer(const Layer& layer, const StepRows& in, TracedLayer few, TracedLayer more);

  /// Whether there is a call that becomes a node.
  bool has_calls() const { return !steps_.empty(); }
  /// Adds the steps of the layer, whose input is value 0. Once.
  StepGraph::Value add_to(StepGraph& graph, const Originals& originals);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  using Nodes = std::set<std::size_t>;
  struct Piece {
    std::vector<ValueId> from;  ///< in order of first use
    Nodes nodes;
  };

  const Shape& shape(ValueId v) const { return few_.graph.values[v].shape; }
  bool is_over_time(ValueId v) const;
  /// Of a value [B, T, ...], one step.
  StepRows rows(ValueId v) const;
  void mark_live();
  void accept_calls();
  bool accepts(const TracedCall& call);
  /// Values that several programs need are computed once.
  void find_ends();
  Piece piece_of(ValueId end) const;
  StepGraph::Value value_of(StepGraph& graph, ValueId v);
  std::unique_ptr<Step> program_of(ValueId end, const Piece& piece) const;

  const Layer& layer_;
  StepRows in_;
  TracedLayer few_, more_;
  std::vector<std::size_t> maker_;                  ///< by value: its node
  std::vector<char> live_;                          ///< by value: whether it depends on the input
  std::map<ValueId, TracedCall> accepted_;          ///< by result
  std::map<ValueId, std::unique_ptr<Step>> steps_;  ///< theirs
  std::set<ValueId> ends_;                          ///< results of programs
  std::map<ValueId, StepGraph::Value> made_;
  Originals originals_;
};

/// A program over time of such values, as a source of steps. `few` and `more` are the same program on other numbers of
/// rows and steps: steps are on axis 1 of all inputs.
StepSource source_of_program(const std::string& kind, std::span<const StepRows> inputs, const Graph& few,
                             const Graph& more);

}  // namespace ferrite::nn::detail
