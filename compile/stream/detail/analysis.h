#pragma once
/// The analysis that makes the program of one step from a program over time: which axis of every value is time, how far
/// it is ahead of the input, and what must be held between steps.
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

/// Applies an operation; a composite, by its parts.
inline Tensors applied(const Primitive& op, const Tensors& in, const Attrs& attrs) {
  return op.is_composite() ? apply_composite(op, OperandList(in), attrs) : op.apply(OperandList(in), attrs);
}

/// The constants of an operation for so many steps.
using AttrsOf = std::function<Attrs(std::int64_t steps)>;

/// A value over time. When step s has come, its newest frame is number s + lead: the `lead` frames that stand before
/// the first step's are known beforehand.
struct Flow {
  int axis = -1;      ///< of time; -1: it has none
  bool live = false;  ///< depends on inputs
  std::int64_t lead = 0;
  Tensor first{};  ///< the first `lead` frames, where there are any
  /// The number of frames that the whole program and the stream have in common: where frames were cut off at the end
  /// and others took their place, the stream has those that were cut off. -1: as many as the operands have.
  std::int64_t valid = -1;
  std::optional<std::size_t> past_end{};  ///< the first node whose windows read frames that are not valid
};

/// Some frames of a value over time.
inline Tensor frames(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) {
  return slice(x, axis, begin, end);
}
inline Tensor joined(const Tensor& a, const Tensor& b, int axis) { return concat({a, b}, axis); }

/// The pass over the nodes of a program, in order; each becomes a FrameNode. One rule for each kind of operation.
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
  /// Refuses a node that a window of its operand can replace.
  [[noreturn]] void refuse_window(const std::string& why) const {
    throw WindowError(refusal(why), static_cast<std::size_t>(node_ - graph_.nodes.data()));
  }

  const Shape& shape(ValueId v) const { return graph_.values[v].shape; }
  const Shape& in_shape(std::size_t i) const { return shape(node_->in[i]); }
  const Flow& flow(std::size_t i) const { return flows_[node_->in[i]]; }
  bool over_time(std::size_t i) const { return flow(i).axis >= 0; }
  /// Frames that a value has in the whole program.
  std::int64_t extent(std::size_t i) const { return in_shape(i)[flow(i).axis]; }
  /// An output that is ahead waits, so that it comes with its step of the input.
  void place_output(std::size_t i);
  int add_state(Tensor first, const std::string& what);
  /// The results of a node that depends on no input.
  void fold(const Graph::Node& n) {
    Tensors in;
    for (const ValueId v : n.in) in.push_back(known_[v]);
    const Tensors out = applied(*n.op, in, n.attrs);
    for (std::size_t k = 0; k < out.size(); ++k) known_[n.out[k]] = out[k];
  }
  void put(std::size_t k, Flow f);
  void analyse(const Graph::Node& n);

  // ---- operands ------------------------------------------------------------------------------------------
  /// The node's operands as one step reads them, all `lead` frames ahead; `axes` are the axes of time, those of
  /// constants included, -1 for operands without one.
  FrameNode operands(std::int64_t lead, const std::vector<int>& axes);
  void check_same_in_all_steps(std::size_t i, int axis) const;
  /// The first `lead` frames of an operand.
  Tensor first_frames(std::size_t i, int axis, std::int64_t lead) const;
  std::int64_t common_lead() const {
    std::optional<std::int64_t> lead;
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) lead = std::min(lead.value_or(flow(i).lead), flow(i).lead);
    return *lead;
  }
  /// An operation that treats every step alone: `attrs(n)` are its constants for n steps, `out_axis` the axis of time
  /// of its results.
  void each_step_alone(const std::vector<int>& axes, int out_axis, const AttrsOf& attrs);
  void alone(int axis, int out_axis, const AttrsOf& attrs);
  /// The same constants for any number of steps.
  AttrsOf same() const {
    return [a = node_->attrs](std::int64_t) { return a; };
  }
  /// Operands that are broadcast from the last axis on: time stands `from_end` axes before the end.
  void broadcast(int from_end);
  /// How many axes before the end time stands, in the first operand that has it.
  int from_end() const {
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) return in_shape(i).rank() - flow(i).axis;
    return 0;
  }

  // ---- the rules -----------------------------------------------------------------------------------------
  void place(const Graph::Node& n);
  /// The axis of time of all operands that have one. Refuses where they differ.
  int common_axis() const;
  void permuted();
  void expanded();
  void stacked();
  /// Treats each step alone if time is not among the last axes, which the operation reads; else refuses.
  void beside(std::int64_t last, const char* why);
  /// Time stays an axis of its own: as many elements stand before it.
  void reshaped();
  void reduced();
  void along_an_axis();
  void chosen();
  /// Rows and leading axes are independent of each other; what is summed over is not.
  void product_of_matrices();

  // ---- frames before the first ---------------------------------------------------------------------------
  /// The value on all steps but with `before` frames in front, of which the flow says what they hold.
  Flow behind(const Flow& x, int axis, const Tensor& before) const {
    Flow out = x;
    out.lead = x.lead + before.shape()[axis];
    out.valid = x.valid + before.shape()[axis];
    out.first = x.lead > 0 ? joined(before, x.first, axis) : before;
    return out;
  }
  /// Frames of zeros, or of another value.
  Tensor filled(const Shape& s, int axis, std::int64_t n, Scalar value, Dtype dtype) const {
    Shape shape = s;
    shape[axis] = n;
    return full(shape, value, dtype);
  }
  void padding();
  /// Frames taken away at the end are taken for those that come after the last step.
  void sliced();
  /// The newest frame is that of an operand.
  void pass_on(const Flow& out, std::size_t operand = 0);
  void concatenation();

  // ---- windows -------------------------------------------------------------------------------------------
  /// A node as a function of windows of its first operand (`window_of`).
  void window();
  void convolution(bool transposed);
  void pooling();

  // ---- recurrences ---------------------------------------------------------------------------------------
  /// A recurrence whose first states are known: `carried[k]` is an operand that result `results[k]` replaces.
  void recurrence(const std::vector<std::size_t>& carried, const std::vector<std::size_t>& results,
                  const std::vector<int>& axes, const std::vector<int>& out_axes, const AttrsOf& attrs);
  void recurrent();
  void scanned();
  /// h[t] = a[t] h[t-1] + b[t]: pieces of a sequence have the bits of the whole.
  void linear();
  /// A recurrence along axis 1 whose state is its result: it begins from operand `state`, zeros where there is none.
  void carrying_results(std::vector<int> axes, std::size_t state);

  StreamProgram& program_;
  const Graph& graph_;
  std::vector<Flow> flows_;
  std::vector<Tensor> known_;  ///< values that depend on no input
  std::int64_t steps_;
  const Graph::Node* node_ = nullptr;
};

}  // namespace ferrite::detail
