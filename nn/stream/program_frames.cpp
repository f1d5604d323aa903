/// From a program over time to the program of one step: which axis of every value is time, how far it is ahead of the
/// input, and what must be held between steps.
#include "ferrite/nn/detail/program_frames.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ferrite/compile/scan_body.h"
#include "ferrite/nn/recurrent/detail/sequence_operands.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/index.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::AxisAttrs;
using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::PadAttrs;
using ferrite::detail::PermuteAttrs;
using ferrite::detail::PoolAttrs;
using ferrite::detail::ReductionAttrs;
using ferrite::detail::ScanAttrs;
using ferrite::detail::ScanBody;
using ferrite::detail::SelectAttrs;
using ferrite::detail::ShapeAttrs;
using ferrite::detail::SliceAttrs;

/// A value over time. When step s has come, its newest frame is number s + lead: the `lead` frames that stand before
/// the first step's are known beforehand.
struct Flow {
  int axis = -1;      ///< of time; -1: it has none
  bool live = false;  ///< depends on inputs
  std::int64_t lead = 0;
  Tensor first{};  ///< the first `lead` frames, where there are any
};

Tensor frames(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) { return slice(x, axis, begin, end); }
Tensor joined(const Tensor& a, const Tensor& b, int axis) { return concat({a, b}, axis); }

/// So many frames of a value that stands for all of them.
Tensor repeated(const Tensor& x, int axis, std::int64_t n) {
  Shape s = x.shape();
  s[axis] = n;
  return expand(frames(x, axis, 0, 1), s);
}

std::int64_t product(const Shape& s, int end) {
  std::int64_t p = 1;
  for (int i = 0; i < end; ++i) p *= s[i];
  return p;
}

/// A shape whose axis of time has so many steps.
auto with_extent(const Shape& s, int axis) {
  return [s, axis](std::int64_t steps) {
    Shape shape = s;
    shape[axis] = steps;
    return Attrs(ShapeAttrs{shape});
  };
}

}  // namespace

class FrameProgram::Analysis {
 public:
  Analysis(FrameProgram& program, std::span<const ProgramInput> inputs, std::int64_t steps)
      : program_(program),
        graph_(program.graph_),
        flows_(graph_.values.size()),
        known_(graph_.values.size()),
        steps_(steps) {
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i)
      flows_[graph_.inputs[i]] = {.axis = inputs[i].time_axis, .live = true};
    for (const Graph::Constant& c : graph_.constants) known_[c.value] = c.tensor;
    for (const Graph::VariableValue& r : graph_.reads) known_[r.value] = graph_.variables[r.variable].peek();
    for (const Graph::Node& n : graph_.nodes) analyse(n);
    for (std::size_t i = 0; i < graph_.outputs.size(); ++i) place_output(i);
  }

 private:
  using Step = std::function<Tensors(const Tensors&, FrameStates&)>;

  [[noreturn]] void refuse(const std::string& why) const {
    const std::string_view path = node_->scope.path();
    throw ValueError("stream: " + std::string(node_->op->name) +
                     (path.empty() ? std::string() : " of " + std::string(path)) + " " + why);
  }

  const Shape& shape(ValueId v) const { return graph_.values[v].shape; }
  const Shape& in_shape(std::size_t i) const { return shape(node_->in[i]); }
  const Flow& flow(std::size_t i) const { return flows_[node_->in[i]]; }
  bool over_time(std::size_t i) const { return flow(i).axis >= 0; }
  /// Frames that a value has in the whole program.
  std::int64_t extent(std::size_t i) const { return in_shape(i)[flow(i).axis]; }

  /// An output that is ahead waits, so that it comes with its step of the input.
  void place_output(std::size_t i) {
    const Flow& f = flows_[graph_.outputs[i]];
    FrameOperand out{.value = graph_.outputs[i], .axis = f.axis};
    if (f.axis >= 0) {
      const std::int64_t n = shape(graph_.outputs[i])[f.axis];
      if (n != steps_)
        throw ValueError("stream: output " + std::to_string(i) + " has " + std::to_string(n) + " steps for " +
                         std::to_string(steps_) + " steps of the inputs; a stream gives one for each");
      if (f.lead > 0) {
        program_.states_.push_back(
            {contiguous(f.first), "output " + std::to_string(i) + ": ahead by " + std::to_string(f.lead) + " steps"});
        out.delay = static_cast<int>(program_.states_.size()) - 1;
      }
    }
    program_.outputs_.push_back(out);
  }

  int add_state(Tensor first, const std::string& what) {
    const std::string_view path = node_->scope.path();
    program_.states_.push_back(
        {contiguous(first),
         std::string(node_->op->name) + (path.empty() ? std::string() : " of " + std::string(path)) + ": " + what});
    return static_cast<int>(program_.states_.size()) - 1;
  }

  /// The results of a node that depends on no input.
  void fold(const Graph::Node& n) {
    Tensors in;
    for (const ValueId v : n.in) in.push_back(known_[v]);
    const Tensors out = n.op->apply(OperandList(in), n.attrs);
    for (std::size_t k = 0; k < out.size(); ++k) known_[n.out[k]] = out[k];
  }

  void put(std::size_t k, const Flow& f) { flows_[node_->out[k]] = f; }

  void analyse(const Graph::Node& n) {
    node_ = &n;
    bool timed = false, live = false;
    for (const ValueId v : n.in) timed |= flows_[v].axis >= 0, live |= flows_[v].live;
    if (timed) return place(n);
    if (!live) fold(n);
    FrameNode node;
    for (const ValueId v : n.in) node.in.push_back({.value = v});
    node.run = [op = n.op, attrs = n.attrs](const Tensors& in, FrameStates&) {
      return op->apply(OperandList(in), attrs);
    };
    for (std::size_t k = 0; k < n.out.size(); ++k) put(k, {.live = live});
    program_.nodes_.push_back(std::move(node));
  }

  // ---- operands ------------------------------------------------------------------------------------------

  /// The node's operands as one step reads them, all `lead` frames ahead; `axes` are the axes of time, those of
  /// constants included, -1 for operands without one.
  FrameNode operands(std::int64_t lead, const std::vector<int>& axes) {
    FrameNode node;
    for (std::size_t i = 0; i < node_->in.size(); ++i) {
      FrameOperand o{.value = node_->in[i], .axis = axes[i]};
      if (axes[i] >= 0 && !over_time(i)) {
        check_same_in_all_steps(i, axes[i]);
        o.one_frame = true;
      } else if (over_time(i) && flow(i).lead > lead) {
        const std::int64_t n = flow(i).lead - lead;
        o.delay =
            add_state(frames(flow(i).first, axes[i], lead, flow(i).lead), "ahead by " + std::to_string(n) + " steps");
      }
      node.in.push_back(o);
    }
    return node;
  }

  void check_same_in_all_steps(std::size_t i, int axis) const {
    const Tensor& t = known_[node_->in[i]];
    if (!t.defined()) refuse("combines steps with a value that has an axis of time of its own");
    const std::int64_t n = t.shape()[axis];
    if (n == 1 || t.strides()[axis] == 0) return;
    const Tensor one = frames(t, axis, 0, 1);
    for (std::int64_t k = 1; k < n; ++k)
      if (!identical(one, frames(t, axis, k, k + 1))) refuse("reads a constant that differs from step to step");
  }
  static bool identical(const Tensor& a, const Tensor& b) {
    const Tensor x = contiguous(a), y = contiguous(b);
    return std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(x.numel() * size_of(x.dtype()))) == 0;
  }

  /// The first `lead` frames of an operand.
  Tensor first_frames(std::size_t i, int axis, std::int64_t lead) const {
    if (axis < 0) {
      const Tensor& t = known_[node_->in[i]];
      if (!t.defined()) refuse("has results before the first step that depend on an input without time");
      return t;
    }
    return over_time(i) ? frames(flow(i).first, axis, 0, lead) : repeated(known_[node_->in[i]], axis, lead);
  }

  std::int64_t common_lead() const {
    std::optional<std::int64_t> lead;
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) lead = std::min(lead.value_or(flow(i).lead), flow(i).lead);
    return *lead;
  }

  /// An operation that treats every step alone: `attrs(n)` are its constants for n steps, `out_axis` the axis of time
  /// of its results.
  template <class A>
  void each_step_alone(const std::vector<int>& axes, int out_axis, const A& attrs) {
    const std::int64_t lead = common_lead();
    FrameNode node = operands(lead, axes);
    Tensors first(node_->out.size());
    if (lead > 0) {
      Tensors in;
      for (std::size_t i = 0; i < axes.size(); ++i) in.push_back(first_frames(i, axes[i], lead));
      first = node_->op->apply(OperandList(in), attrs(lead));
    }
    node.run = [op = node_->op, one = Attrs(attrs(1))](const Tensors& in, FrameStates&) {
      return op->apply(OperandList(in), one);
    };
    program_.nodes_.push_back(std::move(node));
    for (std::size_t k = 0; k < node_->out.size(); ++k)
      put(k, {.axis = out_axis, .live = true, .lead = lead, .first = first[k]});
  }
  template <class A>
  void alone(int axis, int out_axis, const A& attrs) {
    std::vector<int> axes(node_->in.size(), -1);
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (over_time(i)) axes[i] = flow(i).axis;
    if (axis < 0) axis = flow(0).axis;
    each_step_alone(axes, out_axis, attrs);
  }
  /// The same constants for any number of steps.
  auto same() const {
    return [a = node_->attrs](std::int64_t) { return a; };
  }

  /// Operands that are broadcast from the last axis on: time stands `from_end` axes before the end.
  void broadcast(int from_end) {
    std::vector<int> axes(node_->in.size(), -1);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const int axis = in_shape(i).rank() - from_end;
      if (over_time(i)) {
        if (flow(i).axis != axis) refuse("combines values whose axes of time differ");
        axes[i] = axis;
      } else if (axis >= 0 && in_shape(i)[axis] != 1) {
        axes[i] = axis;
      }
    }
    each_step_alone(axes, shape(node_->out[0]).rank() - from_end, same());
  }
  /// How many axes before the end time stands, in the first operand that has it.
  int from_end() const {
    for (std::size_t i = 0; i < node_->in.size(); ++i)
      if (over_time(i)) return in_shape(i).rank() - flow(i).axis;
    return 0;
  }

  // ---- the rules -----------------------------------------------------------------------------------------

  void place(const Graph::Node& n) {
    const std::string_view op = n.op->name;
    if (n.op->is_pointwise()) return broadcast(from_end());
    if (n.op == &ferrite::detail::scan_primitive()) return scanned();
    if (op == "gru_sequence" || op == "lstm_sequence" || op == "rnn_sequence" || op == "peephole_lstm_sequence")
      return recurrent();
    if (op == "convolution" || op == "convolution_transposed") return convolution(op == "convolution_transposed");
    if (op == "pool_sum" || op == "max_pool" || op == "max_pool_indices") return pooling();
    if (op == "pad") return padding();
    if (op == "slice") return sliced();
    if (op == "concat") return concatenation();
    if (op == "matmul") return product_of_matrices();
    if (op == "index_select") return chosen();
    place_view(n);
  }

  void place_view(const Graph::Node& n) {
    const std::string_view op = n.op->name;
    const int t = flow(0).axis;
    if (op == "contiguous" || op == "detach" || op == "checked" || n.op->element_block) return alone(t, t, same());
    if (op == "reshape") return reshaped();
    if (op == "permute") {
      const Shape order = n.attrs.as<PermuteAttrs>().order;
      int to = 0;
      while (order[to] != t) ++to;
      return alone(t, to, same());
    }
    if (op == "expand") {
      const int to = t + shape(n.out[0]).rank() - in_shape(0).rank();
      if (shape(n.out[0])[to] != extent(0)) refuse("spreads one step over time");
      return alone(t, to, with_extent(n.attrs.as<ShapeAttrs>().shape, to));
    }
    if (op == "sum" || op == "prod" || op == "amax" || op == "amin") return reduced();
    if (op == "argmax" || op == "argmin" || op == "select" || op == "unbind" || op == "split" || op == "cumsum" ||
        op == "cumprod" || op == "sort" || op == "topk" || op == "stack" || op == "softmax" || op == "log_softmax")
      return along_an_axis();
    if (op == "layer_norm") {
      const std::int64_t last = std::get<std::int64_t>(*n.attrs.at(0));  // so many axes
      if (in_shape(0).rank() - t <= last) refuse("reduces over time");
      return alone(t, t, same());
    }
    refuse("is not known to be causal");
  }

  /// Time stays an axis of its own: as many elements stand before it.
  void reshaped() {
    const Shape &from = in_shape(0), &to = shape(node_->out[0]);
    const int t = flow(0).axis;
    for (int axis = 0; axis < to.rank(); ++axis)
      if (to[axis] == from[t] && product(to, axis) == product(from, t)) return alone(t, axis, with_extent(to, axis));
    refuse("joins time with other axes: " + from.str() + " to " + to.str());
  }

  void reduced() {
    const auto a = node_->attrs.as<ReductionAttrs>();
    int to = flow(0).axis;
    for (const std::int64_t axis : a.axes) {
      if (axis == flow(0).axis) refuse("reduces over time");
      if (!a.keepdim && axis < flow(0).axis) --to;
    }
    alone(flow(0).axis, to, same());
  }

  void along_an_axis() {
    const std::string_view op = node_->op->name;
    const int t = flow(0).axis, axis = node_->attrs.as<AxisAttrs>().axis;
    if (op == "stack") {
      for (std::size_t i = 0; i < node_->in.size(); ++i)
        if (over_time(i) && flow(i).axis != t) refuse("combines values whose axes of time differ");
      std::vector<int> axes(node_->in.size(), t);
      return each_step_alone(axes, t + (axis <= t), same());
    }
    if (axis == t) refuse("goes along time");
    const bool drops = shape(node_->out[0]).rank() < in_shape(0).rank();
    alone(t, t - (drops && axis < t), same());
  }

  void chosen() {
    const int axis = node_->attrs.as<AxisAttrs>().axis;
    if (over_time(0) && over_time(1)) refuse("chooses among steps by steps");
    if (over_time(0)) {
      if (axis == flow(0).axis) refuse("chooses among steps");
      return alone(flow(0).axis, flow(0).axis, same());
    }
    std::vector<int> axes = {-1, 0};
    each_step_alone(axes, axis, same());
  }

  /// Rows and leading axes are independent of each other; what is summed over is not.
  void product_of_matrices() {
    const int r = from_end();
    const bool left = over_time(0), right = over_time(1);
    if ((left && r == 1) || (right && r == 2) || (left && right && r < 3)) refuse("sums over time");
    if (r >= 3) return broadcast(r);
    std::vector<int> axes = {left ? flow(0).axis : -1, right ? flow(1).axis : -1};
    each_step_alone(axes, shape(node_->out[0]).rank() - r, same());
  }

  // ---- frames before the first ---------------------------------------------------------------------------

  /// The value on all steps but with `before` frames in front, of which the flow says what they hold.
  Flow behind(const Flow& x, int axis, const Tensor& before) const {
    Flow out = x;
    out.lead = x.lead + before.shape()[axis];
    out.first = x.lead > 0 ? joined(before, x.first, axis) : before;
    return out;
  }
  /// Frames of zeros, or of another value.
  Tensor filled(const Shape& s, int axis, std::int64_t n, Scalar value, Dtype dtype) const {
    Shape shape = s;
    shape[axis] = n;
    return full(shape, value, dtype);
  }

  void padding() {
    const auto a = node_->attrs.as<PadAttrs>();
    const int t = flow(0).axis;
    if (a.before[t] < 0) refuse("cuts off the first steps");
    auto rest = a;
    rest.before[t] = rest.after[t] = 0;
    const auto attrs = [rest](std::int64_t) { return Attrs(rest); };
    each_step_alone({t}, t, attrs);
    Flow& f = flows_[node_->out[0]];
    const Spec& out = graph_.values[node_->out[0]];
    if (a.before[t] > 0) f = behind(f, t, filled(out.shape, t, a.before[t], a.value, out.dtype));
  }

  /// Frames taken away at the end are those that come after the last step.
  void sliced() {
    const auto a = node_->attrs.as<SliceAttrs>();
    const int t = flow(0).axis;
    if (a.axis != t) return alone(t, t, same());
    if (a.step != 1) refuse("leaves out steps");
    if (a.begin > flow(0).lead) refuse("looks " + std::to_string(a.begin - flow(0).lead) + " steps ahead");
    Flow out = flow(0);
    out.lead -= a.begin;
    out.first = out.lead > 0 ? frames(out.first, t, a.begin, a.begin + out.lead) : Tensor();
    pass_on(out);
  }

  /// The newest frame is that of an operand.
  void pass_on(const Flow& out, std::size_t operand = 0) {
    FrameNode node;
    node.in.push_back({.value = node_->in[operand]});
    node.run = [](const Tensors& in, FrameStates&) { return Tensors{in[0]}; };
    program_.nodes_.push_back(std::move(node));
    put(0, out);
  }

  void concatenation() {
    const int axis = node_->attrs.as<AxisAttrs>().axis;
    std::size_t timed = 0;
    while (!over_time(timed)) ++timed;
    const int t = flow(timed).axis;
    if (axis != t) {
      for (std::size_t i = 0; i < node_->in.size(); ++i)
        if (over_time(i) && flow(i).axis != t) refuse("combines values whose axes of time differ");
      return each_step_alone(std::vector<int>(node_->in.size(), t), t, same());
    }
    Flow out = flow(timed);
    Tensors before;
    for (std::size_t i = 0; i < node_->in.size(); ++i) {
      if (i == timed) continue;
      if (over_time(i)) refuse("joins two sequences in time");
      if (i > timed) continue;  // behind the last step
      if (!known_[node_->in[i]].defined()) refuse("puts an input before the first step");
      before.push_back(known_[node_->in[i]]);
    }
    if (!before.empty()) out = behind(out, t, concat(std::span<const Tensor>(before.data(), before.size()), t));
    pass_on(out, timed);
  }

  // ---- windows -------------------------------------------------------------------------------------------

  /// A window of `taps` frames, `dilation` apart, the first of them `before` frames of `value` ahead of the operand.
  /// `attrs(n)`: the constants for n results on frames without padding.
  template <class A>
  void window(std::int64_t taps, std::int64_t dilation, std::int64_t before, Scalar value, const A& attrs) {
    const int t = flow(0).axis;
    const std::int64_t span = (taps - 1) * dilation;
    Flow x = flow(0);
    if (before > 0) x = behind(x, t, filled(in_shape(0), t, before, value, graph_.values[node_->in[0]].dtype));
    if (x.lead < span) refuse("looks " + std::to_string(span - x.lead) + " steps ahead");
    if (span == 0 && before == 0) return alone(t, t, attrs);
    const std::int64_t lead = x.lead - span;
    Tensors first(node_->out.size());
    if (lead > 0) {
      Tensors in = {x.first};
      for (std::size_t i = 1; i < node_->in.size(); ++i) in.push_back(first_frames(i, -1, lead));
      first = node_->op->apply(OperandList(in), attrs(lead));
    }
    FrameNode node;
    for (const ValueId v : node_->in) node.in.push_back({.value = v});
    const int state =
        span > 0 ? add_state(frames(x.first, t, lead, x.lead), std::to_string(span) + " frames of its window") : -1;
    node.run = [op = node_->op, one = Attrs(attrs(1)), state, t](const Tensors& in, FrameStates& states) {
      Tensors operands = in;
      if (state >= 0) {
        const auto k = static_cast<std::size_t>(state);
        operands[0] = joined(states.now[k], in[0], t);
        states.next[k] = slice(operands[0], t, 1);
      }
      return op->apply(OperandList(operands), one);
    };
    program_.nodes_.push_back(std::move(node));
    for (std::size_t k = 0; k < node_->out.size(); ++k)
      put(k, {.axis = t, .live = true, .lead = lead, .first = first[k]});
  }

  void convolution(bool transposed) {
    if (over_time(1) || (node_->in.size() > 2 && over_time(2))) refuse("has weights that differ from step to step");
    const int t = flow(0).axis, space = t - 2;
    const auto a = node_->attrs.as<ConvolutionAttrs>();
    if (t == 0) return alone(t, t, same());
    if (t == 1) refuse("sums over time");
    if (a.stride[space] != 1) refuse("strides over time");
    const auto attrs = [a, space](std::int64_t n) {
      ConvolutionAttrs of = a;
      of.before[space] = 0;
      of.size[space] = n;
      return Attrs(of);
    };
    const std::int64_t taps = in_shape(1)[t];
    if (!transposed) return window(taps, a.dilation[space], a.before[space], 0, attrs);
    if (taps != 1 || a.before[space] != 0) refuse("is transposed over several steps");
    alone(t, t, attrs);
  }

  void pooling() {
    const int t = flow(0).axis;
    const auto a = node_->attrs.as<PoolAttrs>();
    const int space = t - (in_shape(0).rank() - a.kernel.rank());
    if (space < 0) return alone(t, t, same());
    if (a.adaptive) refuse("reads windows that depend on the number of steps");
    if (a.stride[space] != 1) refuse("strides over time");
    const bool sums = node_->op->name == "pool_sum";
    if (a.before[space] > 0 && !sums) refuse("pads time");
    if (node_->op->name == "max_pool_indices" && a.kernel[space] != 1) refuse("numbers steps");
    const auto attrs = [a, space](std::int64_t n) {
      PoolAttrs of = a;
      of.before[space] = 0;
      of.size[space] = n;
      return Attrs(of);
    };
    window(a.kernel[space], a.dilation.rank() ? a.dilation[space] : 1, a.before[space], 0, attrs);
  }

  // ---- recurrences ---------------------------------------------------------------------------------------

  /// A recurrence whose first states are known: `carried[k]` is an operand that result `results[k]` replaces.
  template <class A>
  void recurrence(const std::vector<std::size_t>& carried, const std::vector<std::size_t>& results,
                  const std::vector<int>& axes, const std::vector<int>& out_axes, const A& attrs) {
    const std::int64_t lead = common_lead();
    FrameNode node = operands(lead, axes);
    Tensors first(node_->out.size()), begin;
    for (const std::size_t i : carried) {
      if (!known_[node_->in[i]].defined()) refuse("begins from a state that depends on an input");
      begin.push_back(known_[node_->in[i]]);
    }
    if (lead > 0) {
      Tensors in;
      for (std::size_t i = 0; i < axes.size(); ++i) in.push_back(first_frames(i, axes[i], lead));
      first = node_->op->apply(OperandList(in), attrs(lead));
      for (std::size_t k = 0; k < carried.size(); ++k) begin[k] = first[results[k]];
    }
    std::vector<std::size_t> states;
    for (std::size_t k = 0; k < carried.size(); ++k)
      states.push_back(static_cast<std::size_t>(add_state(begin[k], "a state of the recurrence")));
    node.run = [op = node_->op, one = Attrs(attrs(1)), carried, results, states](const Tensors& in, FrameStates& s) {
      Tensors operands = in;
      for (std::size_t k = 0; k < carried.size(); ++k) operands[carried[k]] = s.now[states[k]];
      Tensors out = op->apply(OperandList(operands), one);
      for (std::size_t k = 0; k < carried.size(); ++k) s.next[states[k]] = out[results[k]];
      return out;
    };
    program_.nodes_.push_back(std::move(node));
    for (std::size_t k = 0; k < node_->out.size(); ++k)
      put(k, {.axis = out_axes[k], .live = true, .lead = out_axes[k] < 0 ? 0 : lead, .first = first[k]});
  }

  void recurrent() {
    const auto order = node_->attrs.as<SequenceOrder>();
    const int t = SequenceAxes(order).time;
    if (order.reverse) refuse("runs backwards in time");
    if (!over_time(0) || flow(0).axis != t) refuse("runs along another axis than time");
    std::vector<int> axes(node_->in.size(), -1), out_axes(node_->out.size(), -1);
    for (std::size_t i = 1; i < axes.size(); ++i) {
      const Dtype dtype = graph_.values[node_->in[i]].dtype;
      if (over_time(i) || !is_float(dtype)) refuse("has lengths, resets or weights that belong to whole sequences");
    }
    axes[0] = out_axes[0] = t;
    const bool memory = node_->out.size() == 4;  // y, h, c and what the gradient reads
    Attrs one = node_->attrs;
    one.replace(2, false);  // nothing is saved
    const auto attrs = [one](std::int64_t) { return one; };
    memory ? recurrence({1, 2}, {1, 2}, axes, out_axes, attrs) : recurrence({1}, {1}, axes, out_axes, attrs);
  }

  void scanned() {
    const auto a = node_->attrs.as<ScanAttrs>();
    const auto body = std::static_pointer_cast<const ScanBody>(node_->attrs.body);
    const auto s = body->signature();
    if (a.reverse) refuse("runs backwards in time");
    if (s.sums > 0) refuse("sums over time");
    std::vector<int> axes(node_->in.size(), -1), out_axes(node_->out.size(), -1);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const bool x = i >= s.carries && i < s.carries + s.xs;
      if (over_time(i) && (!x || flow(i).axis != 0)) refuse("runs along another axis than time");
      if (x) axes[i] = 0;
    }
    for (std::size_t k = s.carries; k < out_axes.size(); ++k) out_axes[k] = 0;
    std::vector<std::size_t> carried;
    for (std::size_t k = 0; k < s.carries; ++k) carried.push_back(k);
    recurrence(carried, carried, axes, out_axes, [body](std::int64_t n) { return ScanBody::attrs_of(body, n, false); });
  }

  FrameProgram& program_;
  const Graph& graph_;
  std::vector<Flow> flows_;
  std::vector<Tensor> known_;  ///< values that depend on no input
  std::int64_t steps_;
  const Graph::Node* node_ = nullptr;
};

FrameProgram::FrameProgram(Graph graph, std::span<const ProgramInput> inputs, std::int64_t steps)
    : graph_(std::move(graph)) {
  if (!graph_.writes.empty())
    throw ValueError("stream: the program writes " + graph_.variables[graph_.writes[0].variable].name() +
                     "; put the model into evaluation mode, or make it a state");
  Analysis(*this, inputs, steps);
}

Tensors FrameProgram::step(const Tensors& inputs, FrameStates& states) const {
  std::vector<Tensor> values(graph_.values.size());
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) values[graph_.inputs[i]] = inputs[i];
  for (const Graph::Constant& c : graph_.constants) values[c.value] = c.tensor;
  for (const Graph::VariableValue& r : graph_.reads) values[r.value] = graph_.variables[r.variable].value();
  const auto read = [&](const FrameOperand& o) {
    const Tensor& t = values[o.value];
    if (o.one_frame) return slice(t, o.axis, 0, 1);
    if (o.delay < 0) return t;
    const auto k = static_cast<std::size_t>(o.delay);
    const Tensor both = joined(states.now[k], t, o.axis);
    states.next[k] = slice(both, o.axis, 1);
    return slice(both, o.axis, 0, 1);
  };
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const ferrite::detail::Scoped scoped(graph_.nodes[n].scope);
    Tensors in;
    for (const FrameOperand& o : nodes_[n].in) in.push_back(read(o));
    const Tensors out = nodes_[n].run(in, states);
    for (std::size_t k = 0; k < out.size(); ++k) values[graph_.nodes[n].out[k]] = out[k];
  }
  Tensors out;
  for (const FrameOperand& o : outputs_) out.push_back(read(o));
  return out;
}

}  // namespace ferrite::nn::detail
