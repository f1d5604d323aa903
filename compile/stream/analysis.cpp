/// Finds the program of one step in a program over time: rules for its operations, operands, states and outputs.
#include "ferrite/compile/stream/detail/analysis.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/scan_body.h"
#include "ferrite/tensor/linear_scan.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

// ---- operations that treat every step alone; padding, slices and concatenation in time --------------------

namespace {

/// Returns the number of elements before an axis, for each element of it.
std::int64_t product(const Shape& s, int end) {
  std::int64_t p = 1;
  for (int i = 0; i < end; ++i) p *= s[i];
  return p;
}

/// Returns the constants of an operation whose shape has the number of steps as its axis of time.
AttrsOf with_extent(const Shape& s, int axis) {
  return [s, axis](std::int64_t steps) {
    Shape shape = s;
    shape[axis] = steps;
    return Attrs(ShapeAttrs{shape});
  };
}

}  // namespace

void Analysis::place(const Graph::Node& n) {
  if (n.op->is_pointwise()) return broadcast(from_end());
  const int t = flow(0).axis;
  switch (n.op->time) {
    case TimeRule::keeps: return alone(t, t, same());
    case TimeRule::reshapes: return reshaped();
    case TimeRule::permutes: return permuted();
    case TimeRule::expands: return expanded();
    case TimeRule::reduces: return reduced();
    case TimeRule::along_axis: return along_an_axis();
    case TimeRule::stacks: return stacked();
    case TimeRule::concatenates: return concatenation();
    case TimeRule::chooses: return chosen();
    case TimeRule::multiplies: return product_of_matrices();
    case TimeRule::pads: return padding();
    case TimeRule::slices: return sliced();
    case TimeRule::convolves: return convolution(false);
    case TimeRule::convolves_transposed: return convolution(true);
    case TimeRule::pools_sums:
    case TimeRule::pools_maxima:
    case TimeRule::pools_places: return pooling();
    case TimeRule::transforms_reals: return beside(1, "transforms time");
    case TimeRule::transforms_complex: return beside(2, "transforms time");
    case TimeRule::normalizes: return beside(std::get<std::int64_t>(*n.attrs.at(0)), "reduces over time");
    case TimeRule::linear_recurrence: return linear();
    case TimeRule::minimal_recurrence: return carrying_results({1}, 1);
    case TimeRule::recurrence: return recurrent();
    case TimeRule::scan: return scanned();
    case TimeRule::unknown: break;
  }
  if (n.op->element_block) return alone(t, t, same());
  refuse("is not known to be causal");
}

void Analysis::permuted() {
  const Shape order = node_->attrs.as<PermuteAttrs>().order;
  const int t = flow(0).axis;
  int to = 0;
  while (order[to] != t) ++to;
  alone(t, to, same());
}

void Analysis::expanded() {
  const int to = flow(0).axis + shape(node_->out[0]).rank() - in_shape(0).rank();
  if (shape(node_->out[0])[to] != extent(0)) refuse("spreads one step over time");
  alone(flow(0).axis, to, with_extent(node_->attrs.as<ShapeAttrs>().shape, to));
}

void Analysis::beside(std::int64_t last, const char* why) {
  const int t = flow(0).axis;
  if (in_shape(0).rank() - t <= last) refuse(why);
  alone(t, t, same());
}

void Analysis::reshaped() {
  const Shape &from = in_shape(0), &to = shape(node_->out[0]);
  const int t = flow(0).axis;
  for (int axis = 0; axis < to.rank(); ++axis)
    if (to[axis] == from[t] && product(to, axis) == product(from, t)) return alone(t, axis, with_extent(to, axis));
  const std::string why = "joins time with other axes: " + from.str() + " to " + to.str();
  const bool joins_frames = t < to.rank() && to[t] > 1 && from[t] % to[t] == 0 && product(to, t) == product(from, t);
  if (joins_frames) refuse_window(why);
  refuse(why);
}

void Analysis::reduced() {
  const auto a = node_->attrs.as<ReductionAttrs>();
  int to = flow(0).axis;
  for (const std::int64_t axis : a.axes) {
    if (axis == flow(0).axis) refuse("reduces over time");
    if (!a.keepdim && axis < flow(0).axis) --to;
  }
  alone(flow(0).axis, to, same());
}

void Analysis::along_an_axis() {
  const int t = flow(0).axis, axis = node_->attrs.as<AxisAttrs>().axis;
  if (axis == t) refuse("goes along time");
  const bool drops = shape(node_->out[0]).rank() < in_shape(0).rank();
  alone(t, t - (drops && axis < t), same());
}

int Analysis::common_axis() const {
  int t = -1;
  for (std::size_t i = 0; i < node_->in.size(); ++i) {
    if (!over_time(i)) continue;
    if (t >= 0 && flow(i).axis != t) refuse("combines values whose axes of time differ");
    t = flow(i).axis;
  }
  return t;
}

void Analysis::stacked() {
  const int t = common_axis();
  each_step_alone(std::vector<int>(node_->in.size(), t), t + (node_->attrs.as<AxisAttrs>().axis <= t), same());
}

void Analysis::chosen() {
  const int axis = node_->attrs.as<AxisAttrs>().axis;
  if (over_time(0) && over_time(1)) refuse("chooses among steps by steps");
  if (over_time(0)) {
    if (axis == flow(0).axis) refuse("chooses among steps");
    return alone(flow(0).axis, flow(0).axis, same());
  }
  std::vector<int> axes = {-1, 0};
  each_step_alone(axes, axis, same());
}

void Analysis::product_of_matrices() {
  const int r = from_end();
  const bool left = over_time(0), right = over_time(1);
  if ((left && r == 1) || (right && r == 2) || (left && right && r < 3)) refuse("sums over time");
  if (r >= 3) return broadcast(r);
  std::vector<int> axes = {left ? flow(0).axis : -1, right ? flow(1).axis : -1};
  each_step_alone(axes, shape(node_->out[0]).rank() - r, same());
}

void Analysis::padding() {
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
  f.valid = std::min(f.valid, out.shape[t]);
}

void Analysis::sliced() {
  const auto a = node_->attrs.as<SliceAttrs>();
  const int t = flow(0).axis;
  if (a.axis != t) return alone(t, t, same());
  if (a.step < 0) refuse("turns the order of steps");
  if (a.step != 1) refuse_window("leaves out steps");
  if (a.begin > flow(0).lead) refuse_window("looks " + std::to_string(a.begin - flow(0).lead) + " steps ahead");
  Flow out = flow(0);
  out.lead -= a.begin;
  out.valid -= a.begin;
  out.first = out.lead > 0 ? frames(out.first, t, a.begin, a.begin + out.lead) : Tensor();
  pass_on(out);
}

void Analysis::pass_on(const Flow& out, std::size_t operand) {
  FrameNode node;
  node.in.push_back({.value = node_->in[operand]});
  node.run = [](const Tensors& in, FrameStates&, std::int64_t) { return Tensors{in[0]}; };
  program_.nodes_.push_back(std::move(node));
  put(0, out);
}

void Analysis::concatenation() {
  const int axis = node_->attrs.as<AxisAttrs>().axis;
  const int t = common_axis();
  if (axis != t) return each_step_alone(std::vector<int>(node_->in.size(), t), t, same());
  std::size_t timed = 0;
  while (!over_time(timed)) ++timed;
  Flow out = flow(timed);
  Tensors before;
  for (std::size_t i = 0; i < node_->in.size(); ++i) {
    if (i == timed) continue;
    if (over_time(i)) refuse("joins two sequences in time");
    if (i > timed) continue;  // it comes after the last step
    if (!known_[node_->in[i]].defined()) refuse("puts an input before the first step");
    before.push_back(known_[node_->in[i]]);
  }
  if (!before.empty()) out = behind(out, t, concat(std::span<const Tensor>(before.data(), before.size()), t));
  pass_on(out, timed);
}

// ---- recurrences: sequences of the recurrent layers, and scans --------------------------------------------

void Analysis::recurrence(const std::vector<std::size_t>& carried, const std::vector<std::size_t>& results,
                          const std::vector<int>& axes, const std::vector<int>& out_axes, const AttrsOf& attrs) {
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
    first = applied(*node_->op, in, attrs(lead));
    for (std::size_t k = 0; k < carried.size(); ++k) begin[k] = first[results[k]];
  }
  std::vector<std::size_t> states;
  for (std::size_t k = 0; k < carried.size(); ++k)
    states.push_back(static_cast<std::size_t>(add_state(begin[k], "a state of the recurrence")));
  node.run = [op = node_->op, attrs, carried, results, states](const Tensors& in, FrameStates& s, std::int64_t steps) {
    Tensors operands = in;
    for (std::size_t k = 0; k < carried.size(); ++k) operands[carried[k]] = s.now[states[k]];
    Tensors out = applied(*op, operands, attrs(steps));
    for (std::size_t k = 0; k < carried.size(); ++k) s.next[states[k]] = out[results[k]];
    return out;
  };
  program_.nodes_.push_back(std::move(node));
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = out_axes[k], .live = true, .lead = out_axes[k] < 0 ? 0 : lead, .first = first[k]});
}

void Analysis::recurrent() {
  const auto flag = [&](std::size_t field) { return std::get<bool>(*node_->attrs.at(field)); };
  const bool reverse = flag(0), batch_first = flag(1);  // the constants of all sequences begin with these
  const int t = batch_first ? 1 : 0;
  if (reverse) refuse("runs backwards in time");
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

void Analysis::scanned() {
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

void Analysis::linear() {
  if (node_->attrs.as<LinearScanAttrs>().reverse) refuse("runs backwards in time");
  const int a = in_shape(0).rank() == in_shape(1).rank() ? 1 : -1;  // may be the same in all steps
  carrying_results({a, 1}, 2);
}

void Analysis::carrying_results(std::vector<int> axes, std::size_t state) {
  constexpr int t = 1;  // of [B, T, ...]
  for (std::size_t i = 0; i < node_->in.size(); ++i) {
    if (over_time(i) && (i >= state || flow(i).axis != t)) refuse("runs along another axis than time");
    if (!is_float(graph_.values[node_->in[i]].dtype)) refuse("has lengths or resets that belong to whole sequences");
  }
  Spec rows = graph_.values[node_->out[0]];
  rows.shape.erase(t);
  const Tensor h0 = node_->in.size() > state ? known_[node_->in[state]] : zeros(rows.shape, rows.dtype);
  if (!h0.defined()) refuse("begins from a state that depends on an input");

  const std::int64_t lead = common_lead();
  axes.resize(node_->in.size(), -1);
  FrameNode node = operands(lead, axes);
  const auto apply = [op = node_->op, attrs = node_->attrs, state](const Tensors& in, const Tensor& h) {
    Tensors given;
    for (std::size_t i = 0; i < state; ++i) given.push_back(in[i]);
    given.push_back(h);
    return applied(*op, given, attrs)[0];
  };
  Tensor first;
  if (lead > 0) {
    Tensors in;
    for (std::size_t i = 0; i < state; ++i) in.push_back(first_frames(i, axes[i], lead));
    first = apply(in, h0);
  }
  const auto k = static_cast<std::size_t>(
      add_state(lead > 0 ? contiguous(select(first, t, -1)) : h0, "a state of the recurrence"));
  node.run = [apply, k](const Tensors& in, FrameStates& s, std::int64_t) {
    const Tensor y = apply(in, s.now[k]);
    s.next[k] = select(y, t, -1);
    return Tensors{y};
  };
  program_.nodes_.push_back(std::move(node));
  put(0, {.axis = t, .live = true, .lead = lead, .first = first});
}

// ---- functions of windows over time: convolutions, pooling and slices -------------------------------------

namespace {

/// Gathers the frames under the taps of `steps` windows, each one step later: x [B, C, span + steps] -> [B, steps, C,
/// taps], or [B, C, taps] for a single step.
Tensor windows_of(const Tensor& x, std::int64_t taps, std::int64_t dilation, std::int64_t steps) {
  if (steps == 1) return dilation > 1 && taps > 1 ? slice(x, 2, 0, x.shape()[2], dilation) : x;
  Tensors by_tap;
  for (std::int64_t k = 0; k < taps; ++k) by_tap.push_back(slice(x, 2, k * dilation, k * dilation + steps));
  return transpose(stack(std::span<const Tensor>(by_tap.data(), by_tap.size()), 3), 1, 2);
}

/// Computes a convolution along time as a product of matrices, which a plan packs. It has the bits of the convolution,
/// whose terms are added in the same order (docs/numerics.md).
Tensors product_of_windows(const ConvolutionAttrs& a, const Tensors& in, std::int64_t steps) {
  const Tensor& w = in[1];  // [N, C / groups, taps]
  const std::int64_t B = in[0].shape()[0], N = w.shape()[0], terms = w.shape()[1] * w.shape()[2];
  const std::int64_t rows = B * steps;
  const Tensor taps = windows_of(in[0], w.shape()[2], a.dilation[0], steps);
  const Tensor by_group = permute(reshape(w, {a.groups, N / a.groups, terms}), {0, 2, 1});
  const Tensor y = a.groups == 1
                       ? matmul(reshape(taps, {rows, terms}), select(by_group, 0, 0))
                       : transpose(matmul(transpose(reshape(taps, {rows, a.groups, terms}), 0, 1), by_group), 0, 1);
  const Tensor sums = steps == 1 ? reshape(y, {B, N, 1}) : transpose(reshape(y, {B, steps, N}), 1, 2);
  return Tensors{in.size() > 2 ? sums + reshape(in[2], {N, 1}) : sums};
}

NodeWindow window_of_convolution(const Graph& g, const Graph::Node& n, int t) {
  const auto a = n.attrs.as<ConvolutionAttrs>();
  const int space = t - 2;
  const auto results = [=, op = n.op, is_line = g.values[n.in[0]].shape.rank() == 3](
                           const Tensors& in, std::int64_t steps, std::int64_t dilation) {
    ConvolutionAttrs of = a;
    of.stride[space] = 1, of.before[space] = 0, of.dilation[space] = dilation, of.size[space] = steps;
    return is_line ? product_of_windows(of, in, steps) : applied(*op, in, of);
  };
  return {.taps = g.values[n.in[1]].shape[t],
          .dilation = a.dilation[space],
          .stride = a.stride[space],
          .before = a.before[space],
          .results = results};
}

NodeWindow window_of_pooling(const Graph& g, const Graph::Node& n, int t) {
  const auto a = n.attrs.as<PoolAttrs>();
  const int space = t - (g.values[n.in[0]].shape.rank() - a.kernel.rank());
  const auto results = [=, op = n.op](const Tensors& in, std::int64_t steps, std::int64_t dilation) {
    PoolAttrs of = a;
    of.stride[space] = 1, of.before[space] = 0, of.size[space] = steps;
    if (of.dilation.rank() > 0) of.dilation[space] = dilation;
    return applied(*op, in, of);
  };
  return {.taps = a.kernel[space],
          .dilation = a.dilation.rank() > 0 ? a.dilation[space] : 1,
          .stride = a.stride[space],
          .before = a.before[space],
          .padding = n.op->time == TimeRule::pools_sums ? 0 : -std::numeric_limits<double>::infinity(),
          .results = results};
}

NodeWindow window_of_slice(const Graph::Node& n, int t) {
  const auto a = n.attrs.as<SliceAttrs>();
  const auto results = [=](const Tensors& in, std::int64_t steps, std::int64_t) {
    return Tensors{slice(in[0], t, a.begin, a.begin + steps)};
  };
  return {.taps = a.begin + 1, .stride = a.step, .results = results};
}

/// Returns the window of a reshaping that joins several successive frames to one.
NodeWindow window_of_reshape(const Graph& g, const Graph::Node& n, int t) {
  const Shape &from = g.values[n.in[0]].shape, &to = g.values[n.out[0]].shape;
  const auto results = [to, t](const Tensors& in, std::int64_t steps, std::int64_t) {
    Shape shape = to;
    shape[t] = steps;
    return Tensors{reshape(in[0], shape)};
  };
  return {.taps = from[t] / to[t], .stride = from[t] / to[t], .results = results};
}

}  // namespace

NodeWindow window_of(const Graph& g, const Graph::Node& n, int axis) {
  switch (n.op->time) {
    case TimeRule::convolves: return window_of_convolution(g, n, axis);
    case TimeRule::pools_sums:
    case TimeRule::pools_maxima:
    case TimeRule::pools_places: return window_of_pooling(g, n, axis);
    case TimeRule::reshapes: return window_of_reshape(g, n, axis);
    default: return window_of_slice(n, axis);
  }
}

void Analysis::window() {
  const int t = flow(0).axis;
  const NodeWindow w = window_of(graph_, *node_, t);
  if (w.stride != 1) refuse_window("strides over time");
  const std::int64_t span = (w.taps - 1) * w.dilation;
  Flow x = flow(0);
  if (w.before > 0) x = behind(x, t, filled(in_shape(0), t, w.before, w.padding, graph_.values[node_->in[0]].dtype));
  if (x.lead < span) refuse_window("looks " + std::to_string(span - x.lead) + " steps ahead");
  const std::int64_t lead = x.lead - span;
  Tensors first(node_->out.size());
  if (lead > 0) {
    Tensors in = {x.first};
    for (std::size_t i = 1; i < node_->in.size(); ++i) in.push_back(first_frames(i, -1, lead));
    first = w.results(in, lead, w.dilation);
  }
  FrameNode node;
  for (const ValueId v : node_->in) node.in.push_back({.value = v});
  const int state =
      span > 0 ? add_state(frames(x.first, t, lead, x.lead), std::to_string(span) + " frames of its window") : -1;
  node.run = [w, state, t](const Tensors& in, FrameStates& states, std::int64_t steps) {
    Tensors operands = in;
    if (state >= 0) {
      const auto k = static_cast<std::size_t>(state);
      operands[0] = joined(states.now[k], in[0], t);
      states.next[k] = slice(operands[0], t, steps);
    }
    return w.results(operands, steps, w.dilation);
  };
  program_.nodes_.push_back(std::move(node));
  const auto own = static_cast<std::size_t>(node_ - graph_.nodes.data());
  for (std::size_t k = 0; k < node_->out.size(); ++k)
    put(k, {.axis = t, .live = true, .lead = lead, .first = first[k], .valid = x.valid - span, .past_end = own});
}

void Analysis::convolution(bool transposed) {
  if (over_time(1) || (node_->in.size() > 2 && over_time(2))) refuse("has weights that differ from step to step");
  const int t = flow(0).axis, space = t - 2;
  if (t == 0) return alone(t, t, same());
  if (t == 1) refuse("sums over time");
  if (!transposed) return window();
  const auto a = node_->attrs.as<ConvolutionAttrs>();
  if (a.stride[space] != 1) refuse("strides over time");
  if (in_shape(1)[t] != 1 || a.before[space] != 0) refuse("is transposed over several steps");
  alone(t, t, [a, space](std::int64_t n) {
    ConvolutionAttrs of = a;
    of.size[space] = n;
    return Attrs(of);
  });
}

void Analysis::pooling() {
  const int t = flow(0).axis;
  const auto a = node_->attrs.as<PoolAttrs>();
  const int space = t - (in_shape(0).rank() - a.kernel.rank());
  if (space < 0) return alone(t, t, same());
  if (a.adaptive) refuse("reads windows that depend on the number of steps");
  if (node_->op->time == TimeRule::pools_places && a.kernel[space] != 1) refuse("numbers steps");
  window();
}

// ---- operands, states and outputs -------------------------------------------------------------------------

namespace {

/// Returns n copies of the first frame of a value, which is the same in all steps.
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
  if (!t.defined()) refuse("combines steps with a value that has its own time axis");
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
  passes::remove_dead_code(graph_);  // drops the last state of a recurrence if it is not read: no step computes it
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
