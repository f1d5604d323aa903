/// The program of a layer, cut at the calls of layers that have steps of their own.
#include "ferrite/nn/detail/traced_layer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ferrite/compile/passes.h"
#include "ferrite/compile/tracer.h"

namespace ferrite::nn::detail {
namespace {

bool is_plain(const Context& c) {
  return !c.lengths.defined() && !c.reset_mask.defined() && !c.state.defined() && !c.cell.defined() && !c.carry &&
         !c.replicas;
}

/// Whether steps of a layer are more than a stateless program, which is better fused with what stands around it.
bool is_of_its_own(Step& step) {
  bool own = step.skips();
  step.each([&own](Step& s) {
    own = own || (s.runs() == Step::Runs::kernel && !s.pointwise());
    s.states([&own](const StateMemory&) { own = true; });
  });
  return own;
}

/// Cuts out calls of layers on this thread while it lives.
class Cutter final : public CallObserver {
 public:
  /// Cuts out the calls that are `wanted`, or, where `same` is given, those that it marks.
  Cutter(Tracer& tracer, std::int64_t batch, CutCalls wanted, const std::vector<bool>* same, TracedLayer& to)
      : tracer_(tracer),
        batch_(batch),
        wanted_(wanted),
        same_(same),
        to_(to),
        before_(std::exchange(call_observer, this)) {}
  ~Cutter() override { call_observer = before_; }
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
  /// Forgets a call that was cut out and has thrown: the caller goes on without it.
  void fails() override {
    if (inside_ == 0 || --inside_ > 0) return;
    to_.cut.back() = false;
    takes_.pop_back();
    if (!same_) to_.steps.pop_back();
  }
  const Tensors& takes() const { return takes_; }

 private:
  /// Makes the steps of a call while its layer is there: it may be one that ends with the call.
  bool cuts(const Layer& layer, const Tensor& x, const Context& context) {
    const bool tokens = is_integer(x.dtype());
    if (wanted_ == CutCalls::none || !is_plain(context) || !layer.streams() || x.rank() != (tokens ? 2 : 3) ||
        x.shape()[0] != batch_)
      return false;
    const NewFrame frame;
    CallObserver* const observer = std::exchange(call_observer, nullptr);
    std::unique_ptr<Step> step;
    try {
      step = step_of(layer, {batch_, tokens ? 1 : x.shape()[2], x.dtype()});
    } catch (const Error&) {  // it is seen as a part of the program
    }
    call_observer = observer;
    const auto is_x = [&](const Tensor& y) { return y.impl() == x.impl(); };
    const bool joins = step && step->pointwise() && std::any_of(gave_.begin(), gave_.end(), is_x);
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
  std::size_t inside_ = 0;  ///< calls that have begun, from the one that is cut out on
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

/// The part of a program that makes `end` of other values.
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
    if (maker_[v] == kNone) continue;  // a constant
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
    std::vector<std::set<ValueId>> by_node(few_.nodes.size());  // the programs that a node is part of
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
  const StepGraph::Value y = value_of(graph, few_.outputs[0]);  // or the operation that makes no step of it is named
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
