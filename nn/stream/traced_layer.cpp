/// The program of a layer, cut at the calls of layers that have steps of their own.
#include "ferrite/nn/detail/traced_layer.h"

#include <algorithm>
#include <utility>

#include "ferrite/compile/tracer.h"

namespace ferrite::nn::detail {
namespace {

/// Notes the calls of layers on this thread while it lives.
class Calls final : public CallObserver {
 public:
  struct Call {
    TracedCall call;
    Tensor x, y;
  };

  Calls() : before_(std::exchange(call_observer, this)) {}
  ~Calls() override { call_observer = before_; }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;

  void begins(const Layer& layer, const Tensor& x, const Context& c) override {
    const bool plain = !c.lengths.defined() && !c.reset_mask.defined() && !c.state.defined() && !c.cell.defined() &&
                       c.carry == nullptr && c.replicas == nullptr;
    open_.push_back(calls_.size());
    calls_.push_back({{.layer = &layer, .plain = plain}, x, {}});
  }
  void gives(const Tensor& y) override {
    calls_[open_.back()].y = y;
    calls_[open_.back()].call.end = calls_.size();
    open_.pop_back();
  }
  const std::vector<Call>& all() const { return calls_; }

 private:
  CallObserver* before_;
  std::vector<Call> calls_;
  std::vector<std::size_t> open_;
};

/// The part of a program that makes `end` of other values.
Graph part_of(const Graph& whole, std::span<const ValueId> from, ValueId end, const std::set<std::size_t>& nodes) {
  Graph g = whole;
  g.inputs = {from.begin(), from.end()};
  g.outputs = {end};
  g.nodes.clear();
  for (const std::size_t n : nodes) g.nodes.push_back(whole.nodes[n]);
  return g;
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

}  // namespace

TracedLayer::TracedLayer(const Layer& layer, const StepRows& in, std::int64_t steps) {
  Spec x = spec_of(in);
  x.shape.insert(1, steps);
  std::vector<Calls::Call> seen;
  const auto f = [&](const Tensors& given) {
    const Calls observer;
    Tensors results{layer(given[0])};
    seen = observer.all();
    for (const Calls::Call& c : seen) results.push_back(c.x), results.push_back(c.y);
    return results;
  };
  const NewFrame frame;
  graph = trace(f, {&x, 1});
  for (std::size_t k = 0; k < seen.size(); ++k) {
    calls.push_back(seen[k].call);
    calls[k].x = graph.outputs[2 * k + 1], calls[k].y = graph.outputs[2 * k + 2];
  }
  graph.outputs.resize(1);
}

CutLayer::CutLayer(const Layer& layer, const StepRows& in, TracedLayer few, TracedLayer more)
    : layer_(layer),
      in_(in),
      few_(std::move(few)),
      more_(std::move(more)),
      maker_(few_.graph.values.size(), kNone),
      live_(few_.graph.values.size()) {
  const bool alike =
      few_.graph.values.size() == more_.graph.values.size() && few_.calls.size() == more_.calls.size() &&
      std::equal(few_.graph.nodes.begin(), few_.graph.nodes.end(), more_.graph.nodes.begin(), more_.graph.nodes.end(),
                 [](const Graph::Node& a, const Graph::Node& b) { return a.op == b.op; });
  if (!alike)
    throw ValueError("stream: " + layer.kind() + " computes something else for another number of rows or steps");
  mark_live();
  accept_calls();
  find_ends();
}

bool CutLayer::is_over_time(ValueId v) const {
  const Shape &a = shape(v), &b = more_.graph.values[v].shape;
  if (a.rank() < 2 || a.rank() != b.rank() || a[0] != in_.batch || b[0] != in_.batch + 1 || a[1] == b[1]) return false;
  return std::equal(a.begin() + 2, a.end(), b.begin() + 2, b.end());
}

StepRows CutLayer::rows(ValueId v) const {
  const Spec& s = few_.graph.values[v];
  return {s.shape[0], s.shape.numel() / (s.shape[0] * s.shape[1]), s.dtype};
}

void CutLayer::mark_live() {
  live_[few_.graph.inputs[0]] = 1;
  for (std::size_t n = 0; n < few_.graph.nodes.size(); ++n) {
    const Graph::Node& node = few_.graph.nodes[n];
    const bool live = std::any_of(node.in.begin(), node.in.end(), [&](ValueId v) { return live_[v]; });
    for (const ValueId v : node.out) maker_[v] = n, live_[v] = live;
  }
}

void CutLayer::accept_calls() {
  for (std::size_t k = 1; k < few_.calls.size();) {  // the first one is that of the layer itself
    const TracedCall& call = few_.calls[k];
    if (accepts(call)) {
      accepted_[call.y] = call;
      k = call.end;
    } else {
      ++k;
    }
  }
}

bool CutLayer::accepts(const TracedCall& call) {
  const bool fits = call.plain && call.x != call.y && live_[call.x] && is_over_time(call.x) && is_over_time(call.y) &&
                    shape(call.x).rank() == (is_integer(few_.graph.values[call.x].dtype) ? 2 : 3);
  if (!fits || !call.layer->streams()) return false;
  std::unique_ptr<Step> step;
  try {
    step = step_of(*call.layer, rows(call.x));
  } catch (const Error&) {  // it is seen as a part of the program
    return false;
  }
  const StepRows given = step->result(), wanted = rows(call.y);
  if (given.width != wanted.width || given.dtype != wanted.dtype) return false;
  const bool joins = step->pointwise() && accepted_.contains(call.x);
  if (!joins && !is_of_its_own(*step)) return false;
  steps_[call.y] = std::move(step);
  return true;
}

CutLayer::Piece CutLayer::piece_of(ValueId end) const {
  Piece piece;
  std::vector<ValueId> open = {end};
  std::set<ValueId> seen = {end};
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (v == few_.graph.inputs[0] || (v != end && (ends_.contains(v) || accepted_.contains(v)))) {
      piece.from.push_back(v);
      continue;
    }
    if (maker_[v] == kNone) continue;
    piece.nodes.insert(maker_[v]);
    for (const ValueId in : few_.graph.nodes[maker_[v]].in)
      if (seen.insert(in).second) open.push_back(in);
  }
  std::sort(piece.from.begin(), piece.from.end());
  return piece;
}

void CutLayer::find_ends() {
  const auto add = [&](ValueId v) {
    if (v != few_.graph.inputs[0] && !accepted_.contains(v)) ends_.insert(v);
  };
  add(few_.graph.outputs[0]);
  for (const auto& [y, call] : accepted_) add(call.x);
  for (bool found = true; found;) {
    found = false;
    std::vector<std::set<ValueId>> by_node(few_.graph.nodes.size());  // the programs that a node is part of
    for (const ValueId end : ends_)
      for (const std::size_t n : piece_of(end).nodes) by_node[n].insert(end);
    for (std::size_t n = 0; n < by_node.size(); ++n)
      for (const ValueId v : few_.graph.nodes[n].in) {
        const std::size_t m = maker_[v];
        const bool shared = m != kNone && by_node[m].size() > 1 && by_node[m] != by_node[n] && !by_node[n].empty();
        if (!shared || !live_[v] || !is_over_time(v) || !is_float(few_.graph.values[v].dtype)) continue;
        found = ends_.insert(v).second || found;
      }
  }
}

StepGraph::Value CutLayer::add_to(StepGraph& graph, const Originals& originals) {
  originals_ = originals;
  return value_of(graph, few_.graph.outputs[0]);
}

StepGraph::Value CutLayer::value_of(StepGraph& graph, ValueId v) {
  if (v == few_.graph.inputs[0]) return 0;
  if (const auto at = made_.find(v); at != made_.end()) return at->second;
  if (const auto at = accepted_.find(v); at != accepted_.end()) {
    const StepGraph::Value x = value_of(graph, at->second.x);
    return made_[v] = graph.add(*at->second.layer, std::move(steps_[v]), {x});
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
  for (const ValueId v : piece.from) {
    if (!is_over_time(v) && v != few_.graph.inputs[0])
      throw ValueError("stream: " + layer_.kind() + " uses what a layer in it gives along another axis than time");
    inputs.push_back(rows(v));
  }
  Graph few = part_of(few_.graph, piece.from, end, piece.nodes);
  if (originals_)
    for (Variable& v : few.variables) v = originals_(v);
  return open_step(source_of_program(layer_.kind(), inputs, few, part_of(more_.graph, piece.from, end, piece.nodes)));
}

}  // namespace ferrite::nn::detail
