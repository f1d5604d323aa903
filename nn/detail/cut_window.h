#pragma once
/// Operations inside a layer that stride or look ahead, as steps of their own.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/stream_program.h"
#include "ferrite/nn/detail/steps.h"

namespace ferrite::nn::detail {

/// A program over time, traced on a few steps and on some more, the same values in both.
struct TracedTwice {
  const Graph& few;
  const Graph& more;
  std::int64_t rows, more_rows;
  std::int64_t least;  ///< steps that each value must have in `few`
  /// Traces it on k steps more than `few`; throws ShapeError where it is another program then.
  std::function<Graph(std::int64_t k)> at;
};

/// An operation of a program that is cut out of it: what it reads becomes an output of the program, [B, T, ...], and
/// what it gives a further input. Its step holds a window of the operand.
class CutWindow {
 public:
  /// Gives another form to a value with so many frames.
  using View = std::function<Tensor(const Tensor& x, std::int64_t frames)>;

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
  /// Leaves to the window what pads the operand.
  void take_padding(const Graph& graph);
  /// Finds how many steps of padding stand behind the last step, from the numbers of results.
  void find_end(const TracedTwice& traced);

  Graph::Node node_;
  ValueId x_, y_;
  int axis_;    ///< of time, in the node's operand and result
  int x_axis_;  ///< and in `x_`, from which the operand is made by `views_`, the last one first
  std::vector<View> views_;
  ferrite::detail::NodeWindow function_;
  StepWindow window_;
  bool padded_ = false;      ///< whether frames of padding may be read
  std::int64_t unread_ = 0;  ///< frames at the end that no window reads
  Shape frame_;              ///< the operand's extents but those of rows and time
};

}  // namespace ferrite::nn::detail
