/// When the operations of a body run: what can leave the step does.
#include "ferrite/compile/scan/detail/stages.h"

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/scan/detail/stage.h"

namespace ferrite::detail {

BodyValues::BodyValues(const GraphView& view, const ScanSignature& s)
    : view_(view), depends_(view.graph().values.size()), inputs_(depends_.size()) {
  const Graph& g = view.graph();
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const bool carry = i < s.carries, x = !carry && i < s.carries + s.xs;
    depends_[g.inputs[i]] = carry ? kOnCarry : x ? kOnX : 0;
    inputs_[g.inputs[i]] = carry ? ScanPlace{ScanPlace::Kind::carry, i}
                           : x   ? ScanPlace{ScanPlace::Kind::x, i - s.carries}
                                 : ScanPlace{ScanPlace::Kind::capture, i - s.carries - s.xs};
  }
  for (const Graph::Node& n : g.nodes)
    if (effects_of(g, n).communicates)
      for (const ValueId v : n.out) depends_[v] = kOnCarry;  // what is received differs from call to call
  mark_dependents(g, depends_);
  for (const Graph::Node& n : g.nodes) {
    const bool communicates = effects_of(g, n).communicates;
    const bool free = !communicates && (n.in.empty() || n.op->is_view() || n.op == ops::reshape);
    const bool same = depends_[n.out[0]] == 0;
    when_.push_back(free ? When::anywhere : same ? When::once : When::step);
  }
}

std::size_t BodyValues::source(ValueId v) const {
  return view_.producer(view_.root(
      v, [this](std::size_t p) { return when_[p] == When::anywhere && !view_.graph().nodes[p].in.empty(); }));
}

bool BodyValues::can_stack(std::size_t node) const {
  const Graph& g = view_.graph();
  return detail::can_stack(g, g.nodes[node], [this](ValueId v) { return differs(v); });
}

bool BodyValues::views_stack(ValueId v) const {
  for (std::size_t p = view_.producer(v); p != kNoNode && when_[p] == When::anywhere; p = view_.producer(v)) {
    if (view_.graph().nodes[p].in.empty()) return true;
    if (differs(v) && !can_stack(p)) return false;
    v = view_.graph().nodes[p].in[0];
  }
  return true;
}

namespace {

/// Sends the nodes of a step to the chunk before it or after it, where they can act on many steps at once.
class Choosing {
 public:
  Choosing(const BodyValues& body, const ScanSignature& s, const std::vector<SumTerm>& terms)
      : body_(body), nodes_(body.view().graph().nodes), to_{body.when(), std::vector<char>(nodes_.size())} {
    const Graph& g = body.view().graph();
    for (const SumTerm& t : terms) {  // terms of sums are not computed as such
      read_.push_back(t.b);
      if (t.a != kNoValue) read_.push_back(t.a);
    }
    read_.insert(read_.end(), g.outputs.begin() + static_cast<std::ptrdiff_t>(s.carries + s.sums), g.outputs.end());
    const std::span<const ValueId> carries(g.outputs.data(), s.carries);
    awaited_ = behind(carries, true);
    std::vector<ValueId> all = read_;
    all.insert(all.end(), carries.begin(), carries.end());
    needed_ = behind(all, false);
  }

  Stages run() {
    choose_before();
    choose_after();
    return std::move(to_);
  }

 private:
  std::vector<char> behind(std::span<const ValueId> values, bool pure) const {
    std::vector<char> marked(body_.view().graph().values.size());
    for (const ValueId v : values) marked[v] = true;
    return mark_needed(body_.view().graph(), marked, {}, pure);
  }

  /// Products, reductions and costly functions of the xs, and what follows from these.
  void choose_before() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Graph::Node& n = nodes_[i];
      if (!needed_[i] || to_.when[i] != When::step || !body_.is_of_xs(n.out[0]) || !body_.can_stack(i)) continue;
      bool ready = true, follows = false;
      for (const ValueId v : n.in) {
        const std::size_t from = body_.source(v);
        ready &= body_.views_stack(v) && (!body_.differs(v) || from == kNoNode || to_.before_too[from]);
        follows |= from != kNoNode && to_.when[from] == When::before;
      }
      to_.before_too[i] = ready;
      const bool cheap =
          n.op == ops::add || n.op == ops::sub || n.op == ops::mul || n.op == ops::neg || n.op == ops::cast;
      if (ready && (follows || !cheap)) to_.when[i] = When::before;
    }
  }

  /// Products that no carry waits for, and what follows from these.
  void choose_after() {
    std::vector<char> late(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const Graph::Node& n = nodes_[i];
      if (!needed_[i] || to_.when[i] != When::step || awaited_[i] || !body_.can_stack(i)) continue;
      bool ready = true, follows = false;
      for (const ValueId v : n.in) {
        ready &= body_.views_stack(v);
        const std::size_t from = body_.source(v);
        follows |= from != kNoNode && late[from];
      }
      late[i] = ready && (follows || n.op == ops::matmul);
    }
    const auto in_step = [&](ValueId v) {
      if (const std::size_t from = body_.source(v); from != kNoNode) late[from] = false;
    };
    // Sums and stacks read some results through views that act on one step alone.
    for (const ValueId v : read_)
      if (!body_.views_stack(v)) in_step(v);
    // What a step needs is computed in the step.
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (!late[i] && needed_[i] && to_.when[i] == When::step)
        for (const ValueId v : nodes_[i].in) in_step(v);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (late[i]) to_.when[i] = When::after;
  }

  const BodyValues& body_;
  const std::vector<Graph::Node>& nodes_;
  std::vector<ValueId> read_;           ///< rows of sums, and stacks that go out
  std::vector<char> awaited_, needed_;  ///< by node: carries depend on it, anything does
  Stages to_;
};

}  // namespace

Stages choose_stages(const BodyValues& body, const ScanSignature& s, const std::vector<SumTerm>& terms) {
  return Choosing(body, s, terms).run();
}

}  // namespace ferrite::detail
