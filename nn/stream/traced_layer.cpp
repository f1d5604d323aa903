/// The program of a layer, cut at the calls of layers that have their own steps and at operations that stride or look
/// ahead, which run on windows of their operands.
#include "ferrite/nn/detail/traced_layer.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/operations.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/recorder.h"

// ---- operations that are cut out -----------------------------------------------------------------------

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

/// Returns the only axis, besides that of rows, whose extent depends on the number of steps, or -1 if there is none or
/// more than one.
int time_of(const TracedTwice& traced, ValueId v) {
  const Shape &a = traced.few.values[v].shape, &b = traced.more.values[v].shape;
  if (a.rank() < 2 || a.rank() != b.rank() || a[0] != traced.rows || b[0] != traced.more_rows) return -1;
  int axis = -1;
  for (int k = 1; k < a.rank(); ++k)
    if (a[k] != b[k]) axis = axis < 0 ? k : a.rank();
  return axis < a.rank() ? axis : -1;
}

/// Returns the order of axes that moves one of them to the place after the rows; `to_place` moves it back.
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

/// Returns the program of some values that depend on no input, without anything else that the whole does, even checks.
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

/// Returns the value that all elements of some constants have; nothing if they differ or depend on variables.
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

/// Frames of one value that an operation puts before and after its operand x.
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

/// A permutation or reshaping that keeps time as a separate axis.
struct Viewed {
  WindowFacts::View view;
  int axis;  ///< the axis of time in its operand
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

/// Moves the padding of the operand into the window, as long as all of it has one value.
void take_padding(const Graph& g, bool padded, WindowFacts& f) {
  std::vector<WindowFacts::View> views;  // the views between the last padding found and the operand
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
  const bool one = results == 1 || other.results == 1;  // one step shows no stride
  return x == other.x && axis == other.axis && a.taps == b.taps && a.dilation == b.dilation &&
         (one || a.stride == b.stride) && a.before == b.before && a.padding == b.padding && behind == other.behind &&
         views.size() == other.views.size();
}

CutWindow::CutWindow(const TracedTwice& traced, ValueId result)
    : node_(traced.few.nodes[maker_of(traced.few, result)]), y_(result), axis_(time_of(traced, node_.in[0])) {
  if (axis_ < 0) refuse("does not read steps of rows");
  if (traced.few.values[y_].shape[axis_] < traced.least)  // a slice of one step shows no stride
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
  // The last window ends `end` steps after the last frame. The padding is `end` to `end + stride - 1` steps long: with
  // more, another window would fit.
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  const auto see = [&](const Graph& g) {
    const WindowFacts f = facts_of(g, y_, axis_);
    if (!f.agrees_with(facts_)) refuse("reads other steps for other numbers of them");
    const std::int64_t end = (f.results - 1) * window_.stride - window_.before + window_.reach() - (f.frames - 1);
    const bool groups = node_.op->time == TimeRule::reshapes;  // whole groups of steps
    least = std::max(least, end), most = std::min(most, end + (groups ? 0 : window_.stride - 1));
  };
  see(traced.few);
  see(traced.more);
  constexpr std::int64_t kLengths = 64, kMost = 256;  // long strides need more lengths
  for (std::int64_t k = 1; k <= (least < most ? kMost : kLengths); ++k)
    if (const Graph* const g = traced.at(k)) see(*g);
  if (least != most) refuse("gives a number of steps that does not follow from its windows");
  if (least > facts_.behind && window_.padding != facts_.own_padding)
    refuse("reads other padding after the last step than before the first");
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

// ---- the program of a layer ----------------------------------------------------------------------------

namespace {

bool is_plain(const Context& c) {
  return !c.lengths.defined() && !c.reset_mask.defined() && !c.state.defined() && !c.cell.defined() && !c.carry &&
         !c.replicas;
}

/// Returns whether a layer's step is more than a stateless program, which is better fused with its neighbours.
bool is_of_its_own(Step& step) {
  bool own = step.skips();
  step.each([&own](Step& s) {
    own = own || (s.runs() == Step::Runs::kernel && !s.elements());
    s.states([&own](const StateMemory&) { own = true; });
  });
  return own;
}

/// Cuts out calls of layers on this thread, for the object's life.
class Cutter final : public CallObserver {
 public:
  /// Cuts out the `wanted` calls or, if `same` is not null, those that it marks.
  Cutter(Tracer& tracer, std::int64_t batch, CutCalls wanted, const std::vector<bool>* same, TracedLayer& to)
      : tracer_(tracer),
        batch_(batch),
        wanted_(wanted),
        same_(same),
        to_(to),
        before_(std::exchange(call_observer(), this)) {}
  ~Cutter() override { call_observer() = before_; }
  Cutter(const Cutter&) = delete;
  Cutter& operator=(const Cutter&) = delete;

  void begins(const Layer& layer, const Tensor& x, const Context& context) override {
    if (inside_ == 0) {
      const std::size_t call = to_.cut.size();
      to_.cut.push_back(same_ ? call < same_->size() && (*same_)[call] : call > 0 && cuts(layer, x, context));
      if (to_.cut.back()) takes_.push_back(x);
    }
    if (inside_ > 0 || to_.cut.back()) ++inside_;
  }
  Tensor gives(const Tensor& y) override {
    if (inside_ == 0 || --inside_ > 0) return y;
    gave_.push_back(tracer_.input(y.spec()));
    return gave_.back();
  }
  /// Forgets a call that was cut out and has thrown; the caller may catch the error and continue without it.
  void fails() override {
    if (inside_ == 0 || --inside_ > 0) return;
    to_.cut.back() = false;
    takes_.pop_back();
    if (!same_) to_.steps.pop_back();
  }
  const Tensors& takes() const { return takes_; }

 private:
  /// Returns whether a call is cut out, and makes its steps now, because its layer may not outlive the call.
  bool cuts(const Layer& layer, const Tensor& x, const Context& context) {
    const bool tokens = is_integer(x.dtype());
    if (wanted_ == CutCalls::none || !is_plain(context) || !layer.streams() || x.rank() != (tokens ? 2 : 3) ||
        x.shape()[0] != batch_)
      return false;
    const NewFrame frame;
    CallObserver* const observer = std::exchange(call_observer(), nullptr);
    std::unique_ptr<Step> step;
    try {
      step = step_of(layer, {batch_, tokens ? 1 : x.shape()[2], x.dtype()});
    } catch (const Error&) {  // the call stays a part of the program
    }
    call_observer() = observer;
    const auto is_x = [&](const Tensor& y) { return y.impl() == x.impl(); };
    const bool joins = step && step->elements() && std::any_of(gave_.begin(), gave_.end(), is_x);
    if (!step || (wanted_ == CutCalls::own && !joins && !is_of_its_own(*step))) return false;
    to_.steps.push_back(std::move(step));
    return true;
  }

  Tracer& tracer_;
  std::int64_t batch_;
  CutCalls wanted_;
  const std::vector<bool>* same_;
  TracedLayer& to_;
  CallObserver* before_;
  std::size_t inside_ = 0;  ///< number of running calls from the one that is cut out on
  Tensors takes_, gave_;
};

Graph traced(const Layer& layer, const StepRows& in, std::int64_t steps, CutCalls calls, const std::vector<bool>* same,
             TracedLayer& to) {
  Spec x = spec_of(in);
  x.shape.insert(1, steps);
  Tracer tracer;
  const NewFrame frame(tracer);
  Cutter cutter(tracer, in.batch, calls, same, to);
  Tensors results{layer(tracer.input(x))};
  for (const Tensor& t : cutter.takes()) results.push_back(t);
  Graph graph = tracer.finish(results);
  passes::remove_dead_code(graph);
  return graph;
}

/// Returns the part of a program that computes `end` from other values.
Graph part_of(const Graph& whole, std::span<const ValueId> from, ValueId end, const std::set<std::size_t>& nodes) {
  Graph g = whole;
  g.inputs = {from.begin(), from.end()};
  g.outputs = {end};
  g.nodes.clear();
  for (const std::size_t n : nodes) g.nodes.push_back(whole.nodes[n]);
  return g;
}

}  // namespace

TracedLayer::TracedLayer(const Layer& layer, const StepRows& in, std::int64_t T, CutCalls calls) {
  graph = traced(layer, in, T, calls, nullptr, *this);
}

TracedLayer::TracedLayer(const Layer& layer, const StepRows& in, std::int64_t T, const std::vector<bool>& same) {
  graph = traced(layer, in, T, CutCalls::none, &same, *this);
}

CutLayer::CutLayer(const Layer& layer, const StepRows& in, std::int64_t more_rows, std::int64_t least, TracedLayer few,
                   TracedLayer more, std::span<const ValueId> cut,
                   const std::function<const Graph*(std::int64_t k)>& at)
    : layer_(layer),
      in_(in),
      more_rows_(more_rows),
      least_(least),
      few_(std::move(few.graph)),
      more_(std::move(more.graph)),
      steps_(std::move(few.steps)) {
  const bool alike = few_.values.size() == more_.values.size() && few_.inputs.size() == more_.inputs.size() &&
                     std::equal(few_.nodes.begin(), few_.nodes.end(), more_.nodes.begin(), more_.nodes.end(),
                                [](const Graph::Node& a, const Graph::Node& b) { return a.op == b.op; });
  if (!alike)
    throw ValueError("stream: " + layer.kind() + " computes something else for another number of rows or steps");
  for (const ValueId v : cut) {
    windows_.emplace_back(TracedTwice{few_, more_, in.batch, more_rows, least, at}, v);
    windows_.back().cut_out(few_);
    windows_.back().cut_out(more_);
  }
  mark_live();
  for (const ValueId v : few_.inputs) check_over_time(v, least);
  for (std::size_t k = 1; k < few_.outputs.size(); ++k) check_over_time(few_.outputs[k], least);
  for (std::size_t k = 0; k < steps_.size(); ++k) {
    const StepRows given = steps_[k]->result(), wanted = rows(few_.inputs[k + 1]);
    if (given.width != wanted.width || given.dtype != wanted.dtype)
      throw ValueError("stream: steps of a layer in " + layer.kind() + " give other rows than the layer");
  }
  find_ends();
}

bool CutLayer::is_over_time(ValueId v) const {
  const Shape &a = shape(v), &b = more_.values[v].shape;
  return live_[v] && a.rank() > 1 && a.rank() == b.rank() && a[0] == in_.batch && b[0] == more_rows_ && a[1] != b[1] &&
         std::equal(a.begin() + 2, a.end(), b.begin() + 2, b.end());
}

void CutLayer::check_over_time(ValueId v, std::int64_t least) const {
  const Shape &a = shape(v), &b = more_.values[v].shape;
  const bool sequence = a.rank() > 1 && b.rank() == a.rank() && a[0] == in_.batch && b[0] == more_rows_;
  if (sequence && a[1] < least) throw ShapeError("stream: " + layer_.kind() + " leaves fewer steps than are compared");
  if (is_over_time(v)) return;
  throw ValueError("stream: a value in " + layer_.kind() + " is " + a.str() + " where rows and steps [" +
                   std::to_string(in_.batch) + ", T, ...] are wanted");
}

StepRows CutLayer::rows(ValueId v) const {
  const Spec& s = few_.values[v];
  return {s.shape[0], s.shape.numel() / (s.shape[0] * s.shape[1]), s.dtype};
}

void CutLayer::mark_live() {
  maker_.assign(few_.values.size(), kNone);
  live_.assign(few_.values.size(), 0);
  for (const ValueId v : few_.inputs) live_[v] = 1;
  for (std::size_t n = 0; n < few_.nodes.size(); ++n) {
    const Graph::Node& node = few_.nodes[n];
    const bool live = std::any_of(node.in.begin(), node.in.end(), [&](ValueId v) { return live_[v]; });
    for (const ValueId v : node.out) maker_[v] = n, live_[v] = live;
  }
}

CutLayer::Piece CutLayer::piece_of(ValueId end) const {
  Piece piece;
  std::vector<ValueId> open = {end};
  std::set<ValueId> seen = {end};
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (is_given(v) || (v != end && ends_.contains(v))) {
      piece.from.push_back(v);
      continue;
    }
    if (maker_[v] == kNone) continue;  // v is a constant
    piece.nodes.insert(maker_[v]);
    for (const ValueId in : few_.nodes[maker_[v]].in)
      if (seen.insert(in).second) open.push_back(in);
  }
  std::sort(piece.from.begin(), piece.from.end());
  return piece;
}

void CutLayer::find_ends() {
  for (const ValueId v : few_.outputs)
    if (!is_given(v)) ends_.insert(v);
  for (bool found = true; found;) {
    found = false;
    std::vector<std::set<ValueId>> by_node(few_.nodes.size());  // the ends of the programs that each node is part of
    for (const ValueId end : ends_)
      for (const std::size_t n : piece_of(end).nodes) by_node[n].insert(end);
    for (std::size_t n = 0; n < by_node.size(); ++n)
      for (const ValueId v : few_.nodes[n].in) {
        const std::size_t m = maker_[v];
        const bool shared = m != kNone && by_node[m].size() > 1 && by_node[m] != by_node[n] && !by_node[n].empty();
        if (!shared || !is_over_time(v) || !is_float(few_.values[v].dtype)) continue;
        found = ends_.insert(v).second || found;
      }
  }
}

StepGraph::Value CutLayer::add_to(StepGraph& graph, const Originals& originals) {
  originals_ = originals;
  const StepGraph::Value y = value_of(graph, few_.outputs[0]);  // first, because its errors name the operation
  check_over_time(few_.outputs[0], least_);
  return y;
}

StepGraph::Value CutLayer::value_of(StepGraph& graph, ValueId v) {
  if (v == few_.inputs[0]) return 0;
  if (const auto at = made_.find(v); at != made_.end()) return at->second;
  if (is_given(v)) {
    const auto k = static_cast<std::size_t>(std::find(few_.inputs.begin(), few_.inputs.end(), v) - few_.inputs.begin());
    const StepGraph::Value x = value_of(graph, few_.outputs[k]);
    if (k <= steps_.size()) return made_[v] = graph.add(std::move(steps_[k - 1]), std::span(&x, 1));
    const CutWindow& window = windows_[k - 1 - steps_.size()];
    return made_[v] = graph.add(layer_, window.step(layer_.kind(), rows(few_.outputs[k]), few_, originals_), {x});
  }
  const Piece piece = piece_of(v);
  std::vector<StepGraph::Value> from;
  for (const ValueId u : piece.from) from.push_back(value_of(graph, u));
  return made_[v] = graph.add(layer_, program_of(v, piece), from);
}

std::unique_ptr<Step> CutLayer::program_of(ValueId end, const Piece& piece) const {
  if (piece.from.empty())
    throw ValueError("stream: " + layer_.kind() + " gives something that is not made of its input");
  std::vector<StepRows> inputs;
  for (const ValueId v : piece.from) inputs.push_back(rows(v));
  Graph few = part_of(few_, piece.from, end, piece.nodes);
  if (originals_)
    for (Variable& v : few.variables) v = originals_(v);
  try {
    return open_step(source_of_program(layer_.kind(), inputs, few, part_of(more_, piece.from, end, piece.nodes)));
  } catch (const ferrite::detail::WindowError& e) {
    throw NotCutOut(e, few_.nodes[*std::next(piece.nodes.begin(), static_cast<std::ptrdiff_t>(e.node()))].out[0]);
  } catch (const ValueError& e) {
    if (const std::optional<ValueId> v = shortened(piece)) throw NotCutOut(e, *v);
    throw;
  }
}

int CutLayer::time_of(ValueId v) const {
  const Shape &a = shape(v), &b = more_.values[v].shape;
  for (int k = 1; k < a.rank() && a.rank() == b.rank(); ++k)
    if (a[k] != b[k]) return k;
  return -1;
}

std::optional<ValueId> CutLayer::shortened(const Piece& piece) const {
  std::int64_t most = 0;
  for (const ValueId v : piece.from) most = std::max(most, shape(v)[1]);
  for (const std::size_t n : piece.nodes) {
    const Graph::Node& node = few_.nodes[n];
    if (node.op->time != TimeRule::slices || !live_[node.in[0]]) continue;
    const int t = time_of(node.in[0]);
    if (t < 0) continue;
    const std::int64_t from = shape(node.in[0])[t];
    if (from <= most && shape(node.out[0])[t] < from) return node.out[0];
  }
  return std::nullopt;
}

}  // namespace ferrite::nn::detail
