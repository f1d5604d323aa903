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

/// Equal frames that an operation puts in front of a value, or behind it.
struct Padding {
  ValueId x;
  std::int64_t before;
  double value;
};
std::optional<Padding> padding_of(const Graph& g, const Graph::Node& n, int axis) {
  if (n.op->time == TimeRule::pads) {
    const auto pad = n.attrs.as<PadAttrs>();
    for (int k = 0; k < pad.before.rank(); ++k)
      if (k == axis ? pad.before[k] < 0 : pad.before[k] != 0 || pad.after[k] != 0) return std::nullopt;
    return Padding{n.in[0], pad.before[axis], pad.value.real()};
  }
  if (n.op->time != TimeRule::concatenates || n.attrs.as<AxisAttrs>().axis != axis) return std::nullopt;
  std::optional<ValueId> x;
  std::vector<ValueId> constants;
  std::int64_t before = 0;
  for (const ValueId v : n.in) {
    if (!depends_on_inputs(g, v)) {
      constants.push_back(v);
      before += x ? 0 : g.values[v].shape[axis];
    } else if (x) {
      return std::nullopt;
    } else {
      x = v;
    }
  }
  const std::optional<double> value = only_value(g, constants);
  return x && value ? std::optional(Padding{*x, before, *value}) : std::nullopt;
}

/// A permutation or reshaping that keeps time an axis of its own.
struct Viewed {
  CutWindow::View view;
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

}  // namespace

CutWindow::CutWindow(const TracedTwice& traced, ValueId result)
    : node_(traced.more.nodes[maker_of(traced.more, result)]),  // with few steps a slice may be of one
      x_(node_.in[0]),
      y_(result),
      axis_(time_of(traced, x_)),
      x_axis_(axis_) {
  if (axis_ < 0) refuse("does not read steps of rows");
  if (time_of(traced, y_) != axis_) {
    if (traced.few.values[y_].shape[axis_] < traced.least)
      throw ShapeError("stream: " + std::string(node_.op->name) + " leaves fewer steps than are compared");
    refuse("gives equally many steps for sequences of any length");
  }
  function_ = window_of(traced.few, node_, axis_);
  padded_ = function_.before > 0;
  take_padding(traced.few);
  if (time_of(traced, x_) != x_axis_) refuse("pads something else than steps of rows");
  for (std::size_t i = 1; i < node_.in.size(); ++i)
    if (depends_on_inputs(traced.few, node_.in[i])) refuse("has weights that are made of its inputs");
  const Shape& s = traced.few.values[x_].shape;
  for (int k = 1; k < s.rank(); ++k)
    if (k != x_axis_) frame_.push_back(s[k]);
  window_ = {.taps = function_.taps,
             .dilation = function_.dilation,
             .stride = function_.stride,
             .before = function_.before,
             .padding = function_.padding};
  find_end(traced);
}

void CutWindow::refuse(const std::string& why) const {
  const std::string_view path = node_.scope.path();
  throw ValueError("stream: " + std::string(node_.op->name) +
                   (path.empty() ? std::string() : " of " + std::string(path)) + " " + why);
}

void CutWindow::take_padding(const Graph& graph) {
  std::vector<View> views;  // between the last padding that was met and the operand
  ValueId x = x_;
  int axis = x_axis_;
  for (;;) {
    const std::size_t at = maker_of(graph, x);
    if (at == graph.nodes.size()) return;
    const Graph::Node& n = graph.nodes[at];
    if (const std::optional<Padding> p = padding_of(graph, n, axis)) {
      if (padded_ && p->value != function_.padding) return;
      padded_ = true;
      function_.before += p->before;
      function_.padding = p->value;
      x_ = x = p->x;
      x_axis_ = axis;
      views_.insert(views_.end(), views.begin(), views.end());
      views.clear();
    } else if (const std::optional<Viewed> v = view_of(graph, n, axis)) {
      views.push_back(v->view);
      x = n.in[0];
      axis = v->axis;
    } else {
      return;
    }
  }
}

void CutWindow::find_end(const TracedTwice& traced) {
  // The last window ends `end` steps behind the last frame, or a few less, for which there would be no window more.
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const auto see = [&](const Graph& g) {
    const std::int64_t frames = g.values[x_].shape[x_axis_], results = g.values[y_].shape[axis_];
    const std::int64_t end = (results - 1) * window_.stride - window_.before + window_.reach() - (frames - 1);
    least = std::max(least, end), most = std::min(most, end + window_.stride - 1);
  };
  see(traced.few);
  see(traced.more);
  constexpr std::int64_t kMost = 64;
  for (std::int64_t k = 1; least < most && k < kMost; ++k) try {
      see(traced.at(k));
    } catch (const ShapeError&) {  // it takes groups of steps
    }
  if (least > most) refuse("gives a number of steps that does not follow from its windows");
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
  const ValueId x = turned(x_, x_axis_), y = turned(y_, axis_);
  turn(x_, to_front(graph.values[x_].shape.rank(), x_axis_), x);
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
    const Scoped scoped(node_.scope);
    Shape frames = frame_;
    frames.insert(0, window_.taps);
    frames.insert(0, B);
    Tensors operands{permute(reshape(window, frames), to_place(frames.rank(), x_axis_))};
    for (auto view = views_.rbegin(); view != views_.rend(); ++view) operands[0] = (*view)(operands[0], window_.taps);
    if (unread_ > 0) operands[0] = slice(operands[0], axis_, 0, function_.taps);
    Tensors variables;
    for (const Graph::VariableValue& r : others.reads) variables.push_back(others.variables[r.variable].value());
    for (const Tensor& t : replay(others, std::span(variables.data(), variables.size()))) operands.push_back(t);
    const Tensor y = function_.results(operands, 1, 1)[0];
    return reshape(y, {B, y.numel() / B});
  };
  return window_step(window_, in, window_program(kind, {{B, window_.taps, in.width}, in.dtype}, result, originals));
}

}  // namespace ferrite::nn::detail
