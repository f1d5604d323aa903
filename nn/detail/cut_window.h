#pragma once
/// Operations inside a layer that stride or look ahead, as steps of their own.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/stream_program.h"
#include "ferrite/nn/detail/stream_steps.h"

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

}  // namespace ferrite::nn::detail
