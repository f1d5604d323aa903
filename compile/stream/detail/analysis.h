#pragma once
/// The analysis that turns a program over time into the program of one step: which axis of every value is time, how far
/// the value is ahead of the input, and what must be held between steps.
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ferrite/compile/stream_program.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

/// Applies an operation; a composite is applied by its parts.
inline Tensors applied(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  return op.is_composite() ? apply_composite(op, OperandList(in), attrs) : op.apply(OperandList(in), attrs);
}

/// Returns the constants of an operation for a number of steps.
using AttrsOf = std::function<Attrs(std::int64_t steps)>;

/// A value over time. After step s, its newest frame is number s + lead: the `lead` frames before the first step's are
/// known in advance.
struct Flow {
  int axis = -1;      ///< axis of time; -1 for none
  bool live = false;  ///< depends on inputs of the program
  std::int64_t lead = 0;
  Tensor first{};  ///< the first `lead` frames, if any
  /// The number of frames that the whole program and the stream have in common: where frames were cut off at the end
  /// and others took their place, the stream has those that were cut off. -1: as many as the operands have.
  std::int64_t valid = -1;
  std::optional<std::size_t> past_end{};  ///< the first node whose windows read invalid frames
};

/// Returns the frames begin..end of a value over time.
inline Tensor frames(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  return slice(x, axis, begin, end);
}
inline Tensor joined(const Tensor& a, const Tensor& b, int axis) { return concat({a, b}, axis); }

/// The pass over the nodes of a program, in order. Each becomes a FrameNode, with one rule for each kind of operation.
class Analysis {
 public:
  Analysis(StreamProgram& program, std::span<const int> axes, std::int64_t steps)
      : program_(program),
        graph_(program.graph_),
        flows_(graph_.values.size()),
        known_(graph_.values.size()),
        steps_(steps) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      flows_[graph_.inputs[i]] = {.axis = axes[i], .live = true, .valid = steps};
    for (const Graph::Constant& c : graph_.constants) known_[c.value] = c.tensor;
    for (const Graph::VariableValue& r : graph_.reads) known_[r.value] = graph_.variables[r.variable].peek();
    for (const Graph::Node& n : graph_.nodes) analyse(n);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) place_output(i);
  }

 private:
  std::string refusal(const std::string& why) const { return "stream: " + label_of(*node_) + " " + why; }
  [[noreturn]] void refuse(const std::string& why) const { throw ValueError(refusal(why)); }
  /// Refuses a node that a window of its operand can replace: throws WindowError.
  [[noreturn]] void refuse_window(const std::string& why) const {
    throw WindowError(refusal(why), static_cast<std::size_t>(node_ - graph_.nodes.data()));
  }

  const Shape& shape(ValueId v) const { return graph_.values[v].shape; }
  const Shape& in_shape(std::size_t i) const { return shape(node_->in[i]); }
  const Flow& flow(std::size_t i) const { return flows_[node_->in[i]]; }
  bool over_time(std::size_t i) const { return flow(i).axis >= 0; }
  /// Returns the number of frames that an operand has in the whole program.
  std::int64_t extent(std::size_t i) const { return in_shape(i)[flow(i).axis]; }
  /// Adds an output. An output that is ahead is delayed, so that it comes with its step of the input.
  void place_output(std::size_t i);
  int add_state(Tensor first, const std::string& what);
  /// Computes the results of a node that depends on no input.
  void fold(const Graph::Node& n) {
    Tensors in;
    for (const ValueId v : n.in) in.push_back(known_[v]);
    const Tensors out = applied(*n.op, in, n.attrs);
    for (std::size_t k = 0; k < out.size(); ++k) known_[n.out[k]] = out[k];
  }
  void put(std::size_t k, Flow f);
  void analyse(const Graph::Node& n);

  // ---- operands ------------------------------------------------------------------------------------------
  /// Returns the node with its operands as one step reads them, all `lead` frames ahead. `axes` holds the axes of time,
  /// including those of constants; -1 for operands without one.
  FrameNode operands(std::int64_t lead, const std::vector<int>& axes);
  void check_same_in_all_steps(std::size_t i, int axis) const;
  /// Returns the first `lead` frames of an operand.
  Tensor first_frames(std::size_t i, int axis, std::int64_t lead) const;
  std::int64_t common_lead() const {
    std::optional<std::int64_t> lead;
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) lead = std::min(lead.value_or(flow(i).lead), flow(i).lead);
    return *lead;
  }
  /// Places an operation that treats every step alone: `attrs(n)` returns its constants for n steps, `out_axis` is the
  /// axis of time of its results.
  void each_step_alone(const std::vector<int>& axes, int out_axis, const AttrsOf& attrs);
  void alone(int axis, int out_axis, const AttrsOf& attrs);
  /// Returns the node's own constants for any number of steps.
  AttrsOf same() const {
    return [a = node_->attrs](std::int64_t) { return a; };
  }
  /// Places an operation whose operands are broadcast from the last axis on, with time `from_end` axes before the end.
  void broadcast(int from_end);
  /// Returns how many axes before the end the axis of time is, in the first operand that has one.
  int from_end() const {
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) return in_shape(i).rank() - flow(i).axis;
    return 0;
  }

  // ---- the rules -----------------------------------------------------------------------------------------
  void place(const Graph::Node& n);
  /// Returns the axis of time of all operands that have one. Refuses operands with different axes.
  int common_axis() const;
  void permuted();
  void expanded();
  void stacked();
  /// Treats each step alone if time is not among the last axes, which the operation reads; else refuses the node.
  void beside(std::int64_t last, const char* why);
  /// Places a reshaping in which time stays a separate axis, with as many elements before it.
  void reshaped();
  void reduced();
  void along_an_axis();
  void chosen();
  /// Places a matrix product: rows and leading axes are independent of each other, the axis that is summed over is not.
  void product_of_matrices();

  // ---- frames before the first ---------------------------------------------------------------------------
  /// Returns the flow of a value with the frames `before` in front of it.
  Flow behind(const Flow& x, int axis, const Tensor& before) const {
    Flow out = x;
    out.lead = x.lead + before.shape()[axis];
    out.valid = x.valid + before.shape()[axis];
    out.first = x.lead > 0 ? joined(before, x.first, axis) : before;
    return out;
  }
  /// Returns n frames that hold `value`.
  Tensor filled(const Shape& s, int axis, std::int64_t n, Scalar value, Dtype dtype) const {
    Shape shape = s;
    shape[axis] = n;
    return full(shape, value, dtype);
  }
  void padding();
  /// Places a slice. Frames cut off at the end are treated as those that come after the last step.
  void sliced();
  /// Passes an operand on: the newest frame is the operand's.
  void pass_on(const Flow& out, std::size_t operand = 0);
  void concatenation();

  // ---- windows -------------------------------------------------------------------------------------------
  /// Places a node that is a function of windows of its first operand (`window_of`).
  void window();
  void convolution(bool transposed);
  void pooling();

  // ---- recurrences ---------------------------------------------------------------------------------------
  /// Places a recurrence whose first states are known: result `results[k]` replaces operand `carried[k]`.
  void recurrence(const std::vector<std::size_t>& carried, const std::vector<std::size_t>& results,
                  const std::vector<int>& axes, const std::vector<int>& out_axes, const AttrsOf& attrs);
  void recurrent();
  void scanned();
  /// Places h[t] = a[t] h[t-1] + b[t]: pieces of a sequence have the bits of the whole.
  void linear();
  /// Places a recurrence along axis 1 whose state is its result; it begins from operand `state`, from zeros without it.
  void carrying_results(std::vector<int> axes, std::size_t state);

  StreamProgram& program_;
  const Graph& graph_;
  std::vector<Flow> flows_;
  std::vector<Tensor> known_;  ///< values that depend on no input
  std::int64_t steps_;
  const Graph::Node* node_ = nullptr;
};

}  // namespace ferrite::detail
