/// Operations inside a layer that stride or look ahead: cut out of its program, and run on windows of what they read.
#include "ferrite/nn/detail/cut_window.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

namespace operations = ferrite::detail::ops;
using ferrite::detail::AxisAttrs;
using ferrite::detail::PadAttrs;
using ferrite::detail::PermuteAttrs;

std::size_t maker_of(const Graph& g, ValueId v) {
  const auto makes = [v](const Graph::Node& n) { return std::find(n.out.begin(), n.out.end(), v) != n.out.end(); };
  return static_cast<std::size_t>(std::find_if(g.nodes.begin(), g.nodes.end(), makes) - g.nodes.begin());
}

/// The axis, besides that of rows, on which a value has other extents where there are more steps; -1: there is none, or
/// more than one.
int time_of(const TracedTwice& traced, ValueId v) {
  const Shape &a = traced.few.values[v].shape, &b = traced.more.values[v].shape;
  if (a.rank() < 2 || a.rank() != b.rank() || a[0] != traced.rows || b[0] != traced.more_rows) return -1;
  int axis = -1;
  for (int k = 1; k < a.rank(); ++k)
    if (a[k] != b[k]) axis = axis < 0 ? k : a.rank();
  return axis < a.rank() ? axis : -1;
}

/// The order of axes that puts one of them behind the rows, or back to its place.
Shape to_front(int rank, int axis) {
  Shape order{0, axis};
  for (int k = 1; k < rank; ++k)
    if (k != axis) order.push_back(k);
  return order;
}
Shape to_place(int rank, int axis) {
  Shape order{0};
  for (int k = 2; k < rank; ++k) order.push_back(k);
  order.insert(axis, 1);
  return order;
}
Shape in_order(const Shape& s, const Shape& order) {
  Shape out;
  for (const std::int64_t axis : order) out.push_back(s[static_cast<int>(axis)]);
  return out;
}

/// The program of some values that depend on no input. What else the whole would do, checks included, is left out.
Graph program_of(const Graph& whole, std::span<const ValueId> values) {
  std::set<ValueId> needed(values.begin(), values.end());
  const auto is_needed = [&](ValueId v) { return needed.contains(v); };
  Graph g = whole;
  g.inputs.clear();
  g.outputs.assign(values.begin(), values.end());
  g.nodes.clear();
  for (auto n = whole.nodes.rbegin(); n != whole.nodes.rend(); ++n) {
    if (std::none_of(n->out.begin(), n->out.end(), is_needed)) continue;
    needed.insert(n->in.begin(), n->in.end());
    g.nodes.insert(g.nodes.begin(), *n);
  }
  std::erase_if(g.reads, [&](const Graph::VariableValue& r) { return !is_needed(r.value); });
  return g;
}

/// The value of all elements of some constants; none where they differ, or depend on variables.
std::optional<double> only_value(const Graph& whole, std::span<const ValueId> values) {
  const Graph g = program_of(whole, values);
  if (!g.reads.empty()) return std::nullopt;
  const NewFrame frame;
  std::optional<double> only;
  for (const Tensor& t : replay(g, {}))
    for (const double x : cast(t, Dtype::f64).to_vector<double>()) {
      if (only && *only != x) return std::nullopt;
      only = x;
    }
  return only;
}

bool depends_on_inputs(const Graph& g, ValueId v) {
  std::set<ValueId> live(g.inputs.begin(), g.inputs.end());
  for (const Graph::Node& n : g.nodes)
    if (std::any_of(n.in.begin(), n.in.end(), [&](ValueId u) { return live.contains(u); }))
      live.insert(n.out.begin(), n.out.end());
  return live.contains(v);
}

/// Equal frames that an operation puts in front of a value, and behind it.
struct Padding {
  ValueId x;
  std::int64_t before, behind;
  double value;
};
std::optional<Padding> padding_of(const Graph& g, const Graph::Node& n, int axis) {
  if (n.op->time == TimeRule::pads) {
    const auto pad = n.attrs.as<PadAttrs>();
    for (int k = 0; k < pad.before.rank(); ++k)
      if (k == axis ? std::min(pad.before[k], pad.after[k]) < 0 : pad.before[k] != 0 || pad.after[k] != 0)
        return std::nullopt;
    return Padding{n.in[0], pad.before[axis], pad.after[axis], pad.value.real()};
  }
  if (n.op->time != TimeRule::concatenates || n.attrs.as<AxisAttrs>().axis != axis) return std::nullopt;
  std::optional<ValueId> x;
  std::vector<ValueId> constants;
  std::int64_t before = 0, behind = 0;
  for (const ValueId v : n.in) {
    if (!depends_on_inputs(g, v)) {
      constants.push_back(v);
      (x ? behind : before) += g.values[v].shape[axis];
    } else if (x) {
      return std::nullopt;
    } else {
      x = v;
    }
  }
  const std::optional<double> value = only_value(g, constants);
  return x && value ? std::optional(Padding{*x, before, behind, *value}) : std::nullopt;
}

/// A permutation or reshaping that keeps time an axis of its own.
struct Viewed {
  WindowFacts::View view;
  int axis;  ///< of time, before it
};
std::optional<Viewed> view_of(const Graph& g, const Graph::Node& n, int axis) {
  if (n.op->time == TimeRule::permutes) {
    const Shape order = n.attrs.as<PermuteAttrs>().order;
    return Viewed{[order](const Tensor& x, std::int64_t) { return permute(x, order); }, static_cast<int>(order[axis])};
  }
  if (n.op->time != TimeRule::reshapes) return std::nullopt;
  const Shape &from = g.values[n.in[0]].shape, &to = g.values[n.out[0]].shape;
  const auto before = [](const Shape& s, int end) {
    return std::accumulate(s.begin(), s.begin() + end, std::int64_t{1}, std::multiplies<>());
  };
  for (int k = 0; k < from.rank(); ++k)
    if (from[k] == to[axis] && before(from, k) == before(to, axis))
      return Viewed{[to, axis](const Tensor& x, std::int64_t frames) {
                      Shape shape = to;
                      shape[axis] = frames;
                      return reshape(x, shape);
                    },
                    k};
  return std::nullopt;
}

/// Leaves to the window what pads the operand, as far as all of it is one value.
void take_padding(const Graph& g, bool padded, WindowFacts& f) {
  std::vector<WindowFacts::View> views;  // between the last padding that was met and the operand
  ValueId x = f.x;
  int axis = f.axis;
  for (std::size_t at = maker_of(g, x); at < g.nodes.size(); at = maker_of(g, x)) {
    const Graph::Node& n = g.nodes[at];
    if (const std::optional<Padding> p = padding_of(g, n, axis)) {
      if (padded && p->value != f.function.padding) return;
      padded = true;
      f.function.before += p->before;
      f.function.padding = p->value;
      f.behind += p->behind;
      f.x = x = p->x;
      f.axis = axis;
      f.views.insert(f.views.end(), views.begin(), views.end());
      views.clear();
    } else if (const std::optional<Viewed> v = view_of(g, n, axis)) {
      views.push_back(v->view);
      x = n.in[0];
      axis = v->axis;
    } else {
      return;
    }
  }
}

WindowFacts facts_of(const Graph& g, ValueId result, int axis) {
  const Graph::Node& n = g.nodes[maker_of(g, result)];
  WindowFacts f{.x = n.in[0], .axis = axis, .function = ferrite::detail::window_of(g, n, axis)};
  f.own_padding = f.function.padding;
  take_padding(g, f.function.before > 0, f);
  f.frames = g.values[f.x].shape[f.axis];
  f.results = g.values[result].shape[axis];
  return f;
}

}  // namespace

bool WindowFacts::agrees_with(const WindowFacts& other) const {
  const auto& a = function;
  const auto& b = other.function;
  const bool one = results == 1 || other.results == 1;  // of one step there is no stride
  return x == other.x && axis == other.axis && a.taps == b.taps && a.dilation == b.dilation &&
         (one || a.stride == b.stride) && a.before == b.before && a.padding == b.padding && behind == other.behind &&
         views.size() == other.views.size();
}

CutWindow::CutWindow(const TracedTwice& traced, ValueId result)
    : node_(traced.few.nodes[maker_of(traced.few, result)]), y_(result), axis_(time_of(traced, node_.in[0])) {
  if (axis_ < 0) refuse("does not read steps of rows");
  if (traced.few.values[y_].shape[axis_] < traced.least)  // a slice of one step has no stride
    throw ShapeError("stream: " + std::string(node_.op->name) + " leaves fewer steps than are compared");
  if (time_of(traced, y_) != axis_) refuse("gives equally many steps for sequences of any length");
  facts_ = facts_of(traced.few, y_, axis_);
  const Shape& s = traced.few.values[facts_.x].shape;
  if (time_of(traced, facts_.x) != facts_.axis) refuse("pads something else than steps of rows");
  for (std::size_t i = 1; i < node_.in.size(); ++i)
    if (depends_on_inputs(traced.few, node_.in[i])) refuse("has weights that are made of its inputs");
  for (int k = 1; k < s.rank(); ++k)
    if (k != facts_.axis) frame_.push_back(s[k]);
  window_ = {.taps = facts_.function.taps,
             .dilation = facts_.function.dilation,
             .stride = facts_.function.stride,
             .before = facts_.function.before,
             .padding = facts_.function.padding};
  find_end(traced);
}

void CutWindow::refuse(const std::string& why) const {
  throw ValueError("stream: " + ferrite::detail::label_of(node_) + " " + why);
}

void CutWindow::find_end(const TracedTwice& traced) {
  // The last window ends `end` steps behind the last frame, or a few less, for which there would be no window more.
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const auto see = [&](const Graph& g) {
    const WindowFacts f = facts_of(g, y_, axis_);
    if (!f.agrees_with(facts_)) refuse("reads other steps for other numbers of them");
    const std::int64_t end = (f.results - 1) * window_.stride - window_.before + window_.reach() - (f.frames - 1);
    const bool groups = node_.op->time == TimeRule::reshapes;  // whole ones
    least = std::max(least, end), most = std::min(most, end + (groups ? 0 : window_.stride - 1));
  };
  see(traced.few);
  see(traced.more);
  constexpr std::int64_t kLengths = 64, kMost = 256;  // more where strides are longer
  for (std::int64_t k = 1; k <= (least < most ? kMost : kLengths); ++k)
    if (const Graph* const g = traced.at(k)) see(*g);
  if (least != most) refuse("gives a number of steps that does not follow from its windows");
  if (least > facts_.behind && window_.padding != facts_.own_padding)
    refuse("reads other padding behind the last step than in front");
  if (least >= 0) {
    window_.after = least;
    return;
  }
  unread_ = -least;
  if (window_.dilation != 1) refuse("leaves out the last steps");
  window_.taps += unread_;
}

void CutWindow::cut_out(Graph& graph) const {
  std::vector<Graph::Node> turns;
  const auto turned = [&](ValueId v, int axis) {
    const Spec s = graph.values[v];
    return axis == 1 ? v : graph.add_value({in_order(s.shape, to_front(s.shape.rank(), axis)), s.dtype});
  };
  const auto turn = [&](ValueId from, const Shape& order, ValueId to) {
    if (from != to)
      turns.push_back(
          {.op = operations::permute, .attrs = PermuteAttrs{order}, .in = {from}, .out = {to}, .scope = node_.scope});
  };
  const ValueId x = turned(facts_.x, facts_.axis), y = turned(y_, axis_);
  turn(facts_.x, to_front(graph.values[facts_.x].shape.rank(), facts_.axis), x);
  turn(y, to_place(graph.values[y_].shape.rank(), axis_), y_);
  graph.outputs.push_back(x);
  graph.inputs.push_back(y);
  const auto at = graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(maker_of(graph, y_)));
  graph.nodes.insert(at, turns.begin(), turns.end());
}

std::unique_ptr<Step> CutWindow::step(const std::string& kind, const StepRows& in, const Graph& graph,
                                      const std::function<Variable(const Variable&)>& originals) const {
  const Graph others = program_of(graph, std::span(node_.in.begin() + 1, node_.in.end()));
  const std::int64_t B = in.batch;
  const auto result = [&](const Tensor& window) {
    const ferrite::detail::Scoped scoped(node_.scope);
    Shape frames = frame_;
    frames.insert(0, window_.taps);
    frames.insert(0, B);
    Tensors operands{permute(reshape(window, frames), to_place(frames.rank(), facts_.axis))};
    for (auto view = facts_.views.rbegin(); view != facts_.views.rend(); ++view)
      operands[0] = (*view)(operands[0], window_.taps);
    if (unread_ > 0) operands[0] = slice(operands[0], axis_, 0, facts_.function.taps);
    Tensors variables;
    for (const Graph::VariableValue& r : others.reads) variables.push_back(others.variables[r.variable].value());
    for (const Tensor& t : replay(others, std::span(variables.data(), variables.size()))) operands.push_back(t);
    const Tensor y = facts_.function.results(operands, 1, 1)[0];
    return reshape(y, {B, y.numel() / B});
  };
  return window_step(window_, in, window_program(kind, {{B, window_.taps, in.width}, in.dtype}, result, originals));
}

}  // namespace ferrite::nn::detail
