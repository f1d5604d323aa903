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

// ---- operations as steps of their own ------------------------------------------------------------------

namespace ferrite::nn::detail {

/// A program over time, traced on a few steps and on some more, the same values in both.
struct TracedTwice {
  const Graph& few;
  const Graph& more;
  std::int64_t rows, more_rows;
  std::int64_t least;  ///< steps that each value must have in `few`
  /// The program on k steps more than `few`, k from 1; null where it takes no such number. Throws ValueError where it
  /// applies other operations then.
  std::function<const Graph*(std::int64_t k)> at;
};

/// What an operation reads of its operand, as one trace shows it.
struct WindowFacts {
  ValueId x = 0;                         ///< the operand without its padding
  int axis = 0;                          ///< of time, in it
  ferrite::detail::NodeWindow function;  ///< with that padding in front
  std::int64_t behind = 0;               ///< and so many frames of it behind
  double own_padding = 0;                ///< what the operation itself reads where there is no frame
  std::int64_t frames = 0, results = 0;
  /// Gives another form to a value with so many frames; the operand is made of `x` by all of them, the last one first.
  using View = std::function<Tensor(const Tensor& x, std::int64_t frames)>;
  std::vector<View> views{};

  /// Whether another trace shows the same, but for the number of frames.
  bool agrees_with(const WindowFacts& other) const;
};

/// An operation of a program that is cut out of it: what it reads becomes an output of the program, [B, T, ...], and
/// what it gives a further input. Its step holds a window of the operand.
class CutWindow {
 public:
  /// Cuts out the operation that makes a value. Throws ValueError where it is no function of a window of its operand,
  /// or where the steps behind the last window differ.
  CutWindow(const TracedTwice& traced, ValueId result);
  /// Cuts the operation out of one of the two graphs.
  void cut_out(Graph& graph) const;
  /// The step of it on rows of the operand.
  std::unique_ptr<Step> step(const std::string& kind, const StepRows& in, const Graph& graph,
                             const std::function<Variable(const Variable&)>& originals) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  /// Finds how many steps of padding stand behind the last step, from the numbers of results.
  void find_end(const TracedTwice& traced);

  Graph::Node node_;
  ValueId y_;
  int axis_;  ///< of time, in the node's operand and result
  WindowFacts facts_;
  StepWindow window_;
  std::int64_t unread_ = 0;  ///< frames at the end that no window reads
  Shape frame_;              ///< the operand's extents but those of rows and time
};

// ---- the program of a layer ----------------------------------------------------------------------------

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
