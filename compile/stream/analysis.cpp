/// Operands, states and outputs of the program of one step.
#include "ferrite/compile/stream/detail/analysis.h"

#include <utility>

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::detail {
namespace {

/// So many frames of a value that stands for all of them.
Tensor repeated(const Tensor& x, int axis, std::int64_t n) {
  const Tensor one = frames(x, axis, 0, 1);
  Shape s = x.shape();
  s[axis] = n;
  return n == 1 ? one : expand(one, s);
}

}  // namespace

std::string label_of(const Graph::Node& n) {
  const std::string_view path = n.scope.path();
  return std::string(n.op->name) + (path.empty() ? std::string() : " of " + std::string(path));
}

void Analysis::place_output(std::size_t i) {
  const Flow& f = flows_[graph_.outputs[i]];
  FrameOperand out{.value = graph_.outputs[i], .axis = f.axis};
  if (f.axis >= 0) {
    const std::int64_t n = shape(graph_.outputs[i])[f.axis];
    if (n != steps_)
      throw ValueError("stream: output " + std::to_string(i) + " has " + std::to_string(n) + " steps for " +
                       std::to_string(steps_) + " steps of the inputs; a stream gives one for each");
    if (f.valid < n) {
      const std::string why = "stream: output " + std::to_string(i) + " reads what stands behind the last step";
      if (f.past_end) throw WindowError(why, *f.past_end);
      throw ValueError(why);
    }
    if (f.lead > 0) {
      program_.states_.push_back(
          {contiguous(f.first), "output " + std::to_string(i) + ": ahead by " + std::to_string(f.lead) + " steps"});
      out.delay = static_cast<int>(program_.states_.size()) - 1;
    }
  }
  program_.outputs_.push_back(out);
}

void Analysis::put(std::size_t k, Flow f) {
  if (f.axis >= 0) {
    const std::int64_t extent = shape(node_->out[k])[f.axis];
    const auto each_over_time = [&](const auto& see) {
      for (std::size_t i = 0; i < node_->in.size(); ++i)
        if (over_time(i)) see(flow(i));
    };
    if (f.valid < 0) f.valid = extent, each_over_time([&](const Flow& x) { f.valid = std::min(f.valid, x.valid); });
    f.valid = std::min(f.valid, extent);
    const std::optional<std::size_t> own = std::exchange(f.past_end, std::nullopt);
    if (f.valid < extent) {
      each_over_time([&](const Flow& x) {
        if (!f.past_end) f.past_end = x.past_end;
      });
      if (!f.past_end) f.past_end = own;
    }
  }
  flows_[node_->out[k]] = std::move(f);
}

int Analysis::add_state(Tensor first, const std::string& what) {
  program_.states_.push_back({contiguous(first), label_of(*node_) + ": " + what});
  return static_cast<int>(program_.states_.size()) - 1;
}

void Analysis::analyse(const Graph::Node& n) {
  node_ = &n;
  bool timed = false, live = false;
  for (const ValueId v : n.in) timed |= flows_[v].axis >= 0, live |= flows_[v].live;
  if (timed) return place(n);
  if (!live) fold(n);
  FrameNode node;
  for (const ValueId v : n.in) node.in.push_back({.value = v});
  node.run = [op = n.op, attrs = n.attrs](const Tensors& in, FrameStates&, std::int64_t) {
    return applied(*op, in, attrs);
  };
  for (std::size_t k = 0; k < n.out.size(); ++k) put(k, {.live = live});
  program_.nodes_.push_back(std::move(node));
}

FrameNode Analysis::operands(std::int64_t lead, const std::vector<int>& axes) {
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

void Analysis::check_same_in_all_steps(std::size_t i, int axis) const {
  const Tensor& t = known_[node_->in[i]];
  if (!t.defined()) refuse("combines steps with a value that has an axis of time of its own");
  const std::int64_t n = t.shape()[axis];
  if (n == 1 || t.strides()[axis] == 0) return;
  const Tensor one = frames(t, axis, 0, 1);
  for (std::int64_t k = 1; k < n; ++k)
    if (!same_constant(one, frames(t, axis, k, k + 1))) refuse("reads a constant that differs from step to step");
}

Tensor Analysis::first_frames(std::size_t i, int axis, std::int64_t lead) const {
  if (axis < 0) {
    const Tensor& t = known_[node_->in[i]];
    if (!t.defined()) refuse("has results before the first step that depend on an input without time");
    return t;
  }
  return over_time(i) ? frames(flow(i).first, axis, 0, lead) : repeated(known_[node_->in[i]], axis, lead);
}

void Analysis::each_step_alone(const std::vector<int>& axes, int out_axis, const AttrsOf& attrs) {
  const std::int64_t lead = common_lead();
  FrameNode node = operands(lead, axes);
  Tensors first(node_->out.size());
  if (lead > 0) {
    Tensors in;
    for (std::size_t i = 0; i < axes.size(); ++i) in.push_back(first_frames(i, axes[i], lead));
    first = applied(*node_->op, in, attrs(lead));
  }
  node.run = [op = node_->op, attrs](const Tensors& in, FrameStates&, std::int64_t steps) {
    return applied(*op, in, attrs(steps));
  };
  program_.nodes_.push_back(std::move(node));
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = out_axis, .live = true, .lead = lead, .first = first[k]});
}

void Analysis::alone(int axis, int out_axis, const AttrsOf& attrs) {
  std::vector<int> axes(node_->in.size(), -1);
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (over_time(i)) axes[i] = flow(i).axis;
  if (axis < 0) axis = flow(0).axis;
  each_step_alone(axes, out_axis, attrs);
}

void Analysis::broadcast(int from_end) {
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

StreamProgram::StreamProgram(Graph graph, std::span<const int> axes, std::int64_t steps) : graph_(std::move(graph)) {
  if (!graph_.writes.empty())
    throw ValueError("stream: the program writes " + graph_.variables[graph_.writes[0].variable].name() +
                     "; put the model into evaluation mode, or make it a state");
  passes::remove_dead_code(graph_);  // the last state of a recurrence that nobody reads is no step's
  Analysis(*this, axes, steps);
}

bool StreamProgram::reads_constants_over_time() const {
  const auto is_one_frame = [](const FrameOperand& o) { return o.one_frame; };
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const FrameNode& n) { return std::any_of(n.in.begin(), n.in.end(), is_one_frame); });
}

Tensors StreamProgram::step(const Tensors& inputs, FrameStates& states, std::int64_t steps) const {
  std::vector<Tensor> values(graph_.values.size());
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) values[graph_.inputs[i]] = inputs[i];
  for (const Graph::Constant& c : graph_.constants) values[c.value] = c.tensor;
  for (const Graph::VariableValue& r : graph_.reads) values[r.value] = graph_.variables[r.variable].value();
  const auto read = [&](const FrameOperand& o) {
    const Tensor& t = values[o.value];
    if (o.one_frame) return repeated(t, o.axis, steps);
    if (o.delay < 0) return t;
    const auto k = static_cast<std::size_t>(o.delay);
    const Tensor both = joined(states.now[k], t, o.axis);
    states.next[k] = slice(both, o.axis, steps);
    return slice(both, o.axis, 0, steps);
  };
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Scoped scoped(graph_.nodes[n].scope);
    Tensors in;
    for (const FrameOperand& o : nodes_[n].in) in.push_back(read(o));
    const Tensors out = nodes_[n].run(in, states, steps);
    for (std::size_t k = 0; k < out.size(); ++k) values[graph_.nodes[n].out[k]] = out[k];
  }
  Tensors out;
  for (const FrameOperand& o : outputs_) out.push_back(read(o));
  return out;
}

}  // namespace ferrite::detail
