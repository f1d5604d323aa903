#pragma once
/// What a layer computes of a sequence, cut at the calls of other layers.
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

/// Which calls of layers inside a layer are cut out: those that have kernels, states or strides; all that stream; none.
enum class CutCalls : std::uint8_t { own, all, none };

/// A layer's program on so many steps of x [B, T, D], tokens [B, T]. What a call that is cut out gives is a further
/// input of it, and what the call takes a further output.
struct TracedLayer {
  Graph graph;
  std::vector<bool> cut;                     ///< by call, in order; those inside one that is cut out are not counted
  std::vector<std::unique_ptr<Step>> steps;  ///< of the calls that are cut out

  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps, CutCalls calls);
  /// With the same calls cut out, and no steps.
  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps, const std::vector<bool>& cut);
};

/// A layer as a graph of steps: those of the calls that were cut out, and programs of what stands between them.
class CutLayer {
 public:
  /// Maps a variable of the layer to the one that a stream follows; null: itself.
  using Originals = std::function<Variable(const Variable&)>;

  /// `more` is the program of `few` on `more_rows` rows and some steps more. Throws ValueError where the two differ, or
  /// time is not where steps have it, ShapeError where fewer than `least` steps are left somewhere.
  CutLayer(const Layer& layer, const StepRows& in, std::int64_t more_rows, std::int64_t least, TracedLayer few,
           TracedLayer more);

  bool has_calls() const { return !steps_.empty(); }
  /// Adds the steps of the layer, whose input is value 0. Once.
  StepGraph::Value add_to(StepGraph& graph, const Originals& originals);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Piece {
    std::vector<ValueId> from;
    std::set<std::size_t> nodes;
  };

  const Shape& shape(ValueId v) const { return few_.values[v].shape; }
  bool is_over_time(ValueId v) const;
  /// Throws unless a value is over time, in enough steps.
  void check_over_time(ValueId v, std::int64_t least) const;
  /// Of a value [B, T, ...], one step.
  StepRows rows(ValueId v) const;
  bool is_given(ValueId v) const { return maker_[v] == kNone && live_[v]; }
  void mark_live();
  /// Values that several programs need are computed once.
  void find_ends();
  Piece piece_of(ValueId end) const;
  StepGraph::Value value_of(StepGraph& graph, ValueId v);
  std::unique_ptr<Step> program_of(ValueId end, const Piece& piece) const;

  const Layer& layer_;
  StepRows in_;
  std::int64_t more_rows_, least_;
  Graph few_, more_;
  std::vector<std::unique_ptr<Step>> steps_;  ///< by call
  std::vector<std::size_t> maker_;            ///< by value: its node
  std::vector<char> live_;                    ///< by value: whether it depends on an input
  std::set<ValueId> ends_;                    ///< results of programs
  std::map<ValueId, StepGraph::Value> made_;
  Originals originals_;
};

/// A program over time of such values, as a source of steps. `few` and `more` are the same program on other numbers of
/// steps, and of rows if there are several: steps are on axis 1 of all inputs.
StepSource source_of_program(const std::string& kind, std::span<const StepRows> inputs, const Graph& few,
                             const Graph& more);

}  // namespace ferrite::nn::detail
