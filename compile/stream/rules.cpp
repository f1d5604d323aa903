/// Rules for operations that treat every step alone, and for padding, slices and concatenation in time.
#include "ferrite/compile/stream/detail/analysis.h"

#include <algorithm>
#include <iterator>

#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {
namespace {

/// Elements before an axis, for each element of it.
std::int64_t product(const Shape& s, int end) {
  std::int64_t p = 1;
  for (int i = 0; i < end; ++i) p *= s[i];
  return p;
}

/// A shape whose axis of time has so many steps.
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
    if (i > timed) continue;  // behind the last step
    if (!known_[node_->in[i]].defined()) refuse("puts an input before the first step");
    before.push_back(known_[node_->in[i]]);
  }
  if (!before.empty()) out = behind(out, t, concat(std::span<const Tensor>(before.data(), before.size()), t));
  pass_on(out, timed);
}

}  // namespace ferrite::detail
