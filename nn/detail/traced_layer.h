#pragma once
/// The program of a layer, cut at the calls of other layers.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/nn/detail/cut_window.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn::detail {

/// Chooses the calls that are cut out of a layer: of layers with kernels, states or strides; of all that stream; none.
enum class CutCalls : std::uint8_t { own, all, none };

/// The program of a layer on T steps of x [B, T, D], or of tokens [B, T]. What a call that is cut out gives is a
/// further input of it, and what the call takes a further output.
struct TracedLayer {
  Graph graph;
  std::vector<bool> cut;                     ///< whether each call is cut out; calls inside such a call do not count
  std::vector<std::unique_ptr<Step>> steps;  ///< of the calls that are cut out

  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps, CutCalls calls);
  /// With the same calls cut out, and no steps.
  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps, const std::vector<bool>& cut);
};

/// Names a value of a traced layer whose operation must be cut out, too, because it strides or looks ahead.
class NotCutOut : public ValueError {
 public:
  NotCutOut(const ValueError& why, ValueId value) : ValueError(why), value_(value) {}
  ValueId value() const { return value_; }

 private:
  ValueId value_;
};

/// Turns a layer into a graph of steps: those of the calls and operations that were cut out, and programs of what lies
/// between them.
class CutLayer {
 public:
  /// Maps a variable of the layer to the one that a stream follows; null: itself.
  using Originals = std::function<Variable(const Variable&)>;

  /// `more` is the program of `few` on `more_rows` rows and some steps more, `at(k)` that on k steps more than `few`,
  /// or null. The operations that make `cut` are cut out, too. Throws ValueError where the programs differ, or time is
  /// not where steps have it, ShapeError where fewer than `least` steps are left somewhere.
  CutLayer(const Layer& layer, const StepRows& in, std::int64_t more_rows, std::int64_t least, TracedLayer few,
           TracedLayer more, std::span<const ValueId> cut, const std::function<const Graph*(std::int64_t k)>& at);

  bool has_calls() const { return !steps_.empty(); }
  /// Adds the steps of the layer, whose input is value 0. Once. Throws NotCutOut for an operation that must be cut out.
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
  /// The rows that one step of a value [B, T, ...] has.
  StepRows rows(ValueId v) const;
  bool is_given(ValueId v) const { return maker_[v] == kNone && live_[v]; }
  void mark_live();
  /// Finds the values at which programs end, so that what several of them need is computed once.
  void find_ends();
  Piece piece_of(ValueId end) const;
  StepGraph::Value value_of(StepGraph& graph, ValueId v);
  std::unique_ptr<Step> program_of(ValueId end, const Piece& piece) const;
  /// The axis, behind that of rows, on which a value has more where there are more steps; -1: there is none.
  int time_of(ValueId v) const;
  /// Gives the first slice of a program that leaves out steps of its inputs.
  std::optional<ValueId> shortened(const Piece& piece) const;

  const Layer& layer_;
  StepRows in_;
  std::int64_t more_rows_, least_;
  Graph few_, more_;
  std::vector<std::unique_ptr<Step>> steps_;  ///< of each call that was cut out
  std::vector<CutWindow> windows_;  ///< and the operations; their inputs and outputs come after those of calls
  std::vector<std::size_t> maker_;  ///< the node that makes each value
  std::vector<char> live_;          ///< whether each value depends on an input
  std::set<ValueId> ends_;          ///< the values at which programs end
  std::map<ValueId, StepGraph::Value> made_;
  Originals originals_;
};

/// Makes a source of steps of a program over time on such inputs. `few` and `more` are the same program on other
/// numbers of steps, and of rows if there are several: steps are on axis 1 of all inputs.
StepSource source_of_program(const std::string& kind, std::span<const StepRows> inputs, const Graph& few,
                             const Graph& more);

}  // namespace ferrite::nn::detail
