#pragma once
/// The program of a layer, cut at the calls of other layers and at the operations inside it that stride or look ahead.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/stream_program.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/nn/step_graph.h"

// ---- operations as separate steps ----------------------------------------------------------------------

namespace ferrite::nn::detail {

/// A program over time, traced on a few steps and on some more, with the same values in both.
struct TracedTwice {
  const Graph& few;
  const Graph& more;
  std::int64_t rows, more_rows;
  std::int64_t least;  ///< minimum number of steps of each value in `few`
  /// Returns the program on k steps more than `few`, k from 1, or null if it does not take that many. Throws ValueError
  /// if it applies other operations then.
  std::function<const Graph*(std::int64_t k)> at;
};

/// The windows that an operation reads of its operand, as one trace shows them.
struct WindowFacts {
  ValueId x = 0;                         ///< the operand without its padding
  int axis = 0;                          ///< the axis of time in x
  ferrite::detail::NodeWindow function;  ///< the window, including the padding in front
  std::int64_t behind = 0;               ///< number of frames of padding after x
  double own_padding = 0;                ///< the value that the operation itself reads in place of missing frames
  std::int64_t frames = 0, results = 0;
  /// Views a value with a number of frames in another form; all views of `x`, the last one first, give the operand.
  using View = std::function<Tensor(const Tensor& x, std::int64_t frames)>;
  std::vector<View> views{};

  /// Returns whether another trace shows the same windows, apart from the number of frames.
  bool agrees_with(const WindowFacts& other) const;
};

/// An operation that is cut out of a program: its operand becomes a further output of the program, [B, T, ...], and its
/// result a further input. Its step holds a window of the operand.
class CutWindow {
 public:
  /// Examines the operation that makes a value. Throws ValueError if it is not a function of windows of its operand, or
  /// if the steps after the last window differ.
  CutWindow(const TracedTwice& traced, ValueId result);
  /// Cuts the operation out of one of the two graphs.
  void cut_out(Graph& graph) const;
  /// Returns the step of the operation on rows of the operand.
  std::unique_ptr<Step> step(const std::string& kind, const StepRows& in, const Graph& graph,
                             const std::function<Variable(const Variable&)>& originals) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  /// Finds the number of steps of padding after the last step, from the numbers of results.
  void find_end(const TracedTwice& traced);

  Graph::Node node_;
  ValueId y_;
  int axis_;  ///< the axis of time in the node's operand and result
  WindowFacts facts_;
  StepWindow window_;
  std::int64_t unread_ = 0;  ///< number of frames at the end that no window reads
  Shape frame_;              ///< the operand's extents without those of rows and time
};

// ---- the program of a layer ----------------------------------------------------------------------------

/// The calls that are cut out of a layer: those of layers with kernels, states or strides; those of all layers that
/// stream; or none.
enum class CutCalls : std::uint8_t { own, all, none };

/// The program of a layer on T steps of x [B, T, D], or of tokens [B, T]. The result of a call that is cut out is a
/// further input of the program, and the argument of the call a further output.
struct TracedLayer {
  Graph graph;
  std::vector<bool> cut;                     ///< whether each call is cut out; calls inside such a call do not count
  std::vector<std::unique_ptr<Step>> steps;  ///< the steps of the calls that are cut out

  TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps, CutCalls calls);
  /// Traces a layer with the given calls cut out, and makes no steps.
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

/// A layer as a graph of steps: those of the calls and operations that were cut out, and programs of the operations
/// between them.
class CutLayer {
 public:
  /// Maps a variable of the layer to the one that a stream follows; null: itself.
  using Originals = std::function<Variable(const Variable&)>;

  /// Compares the programs of a layer. `more` is the program of `few` on `more_rows` rows and some steps more, `at(k)`
  /// that on k steps more than `few`, or null. The operations that make `cut` are cut out, too. Throws ValueError if
  /// the programs differ or a value does not have time on axis 1, ShapeError if a value has fewer than `least` steps.
  CutLayer(const Layer& layer, const StepRows& in, std::int64_t more_rows, std::int64_t least, TracedLayer few,
           TracedLayer more, std::span<const ValueId> cut, const std::function<const Graph*(std::int64_t k)>& at);

  bool has_calls() const { return !steps_.empty(); }
  /// Adds the steps of the layer, whose input is value 0; may be called once. Throws NotCutOut for an operation that
  /// must be cut out.
  StepGraph::Value add_to(StepGraph& graph, const Originals& originals);

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  struct Piece {
    std::vector<ValueId> from;
    std::set<std::size_t> nodes;
  };

  const Shape& shape(ValueId v) const { return few_.values[v].shape; }
  bool is_over_time(ValueId v) const;
  /// Throws unless a value is over time and has at least `least` steps.
  void check_over_time(ValueId v, std::int64_t least) const;
  /// Returns the rows of one step of a value [B, T, ...].
  StepRows rows(ValueId v) const;
  bool is_given(ValueId v) const { return maker_[v] == kNone && live_[v]; }
  void mark_live();
  /// Finds the values at which programs end, so that what several programs need is computed once.
  void find_ends();
  Piece piece_of(ValueId end) const;
  StepGraph::Value value_of(StepGraph& graph, ValueId v);
  std::unique_ptr<Step> program_of(ValueId end, const Piece& piece) const;
  /// Returns the first axis, after that of rows, whose extent depends on the number of steps, or -1.
  int time_of(ValueId v) const;
  /// Returns the first slice of a program that leaves out steps of its inputs.
  std::optional<ValueId> shortened(const Piece& piece) const;

  const Layer& layer_;
  StepRows in_;
  std::int64_t more_rows_, least_;
  Graph few_, more_;
  std::vector<std::unique_ptr<Step>> steps_;  ///< the step of each call that was cut out
  std::vector<CutWindow> windows_;  ///< the operations cut out; their inputs and outputs come after those of calls
  std::vector<std::size_t> maker_;  ///< the node that makes each value
  std::vector<char> live_;          ///< whether each value depends on an input
  std::set<ValueId> ends_;          ///< the values at which programs end
  std::map<ValueId, StepGraph::Value> made_;
  Originals originals_;
};

/// Returns the step of a program over time, with steps on axis 1 of all inputs. `few` and `more` are the same program
/// on different numbers of steps, and of rows if there are several.
StepSource source_of_program(const std::string& kind, std::span<const StepRows> inputs, const Graph& few,
                             const Graph& more);

}  // namespace ferrite::nn::detail
