/// Takes a scan's body apart into stages: sums as terms, when operations run, graphs of stages, places of values.
#include "ferrite/compile/scan_stages.h"

#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/rewrite.h"

namespace ferrite::detail {

// ---- sums over all steps, as terms that one product or one sum of rows computes for many steps ------------

namespace {

class Terms {
 public:
  explicit Terms(const GraphView& view) : view_(view), to_{view.graph(), {}} {}

  void add(std::size_t sum, ValueId v) {
    const Graph::Node* const n = view_.node_of(v);
    if (n && n->op == ops::add && n->in.size() == 2 && same_types(*n)) {
      add(sum, n->in[0]);
      add(sum, n->in[1]);
    } else if (n && n->op == ops::permute && is_matrix_product(n->in[0])) {  // (a^T b)^T = b^T a
      const Graph::Node& product = *view_.node_of(n->in[0]);
      to_.terms.push_back({sum, product.in[1], transposed(product.in[0])});
    } else if (n && n->op == ops::reshape) {
      add(sum, n->in[0]);
    } else if (is_matrix_product(v)) {
      to_.terms.push_back({sum, transposed(n->in[0]), n->in[1]});
    } else if (n && n->op == ops::sum && sums_rows(*n)) {
      to_.terms.push_back({sum, kNoValue, n->in[0]});
    } else {
      to_.terms.push_back({sum, kNoValue, as_row(v)});
    }
  }
  SummedBody finish() { return std::move(to_); }

 private:
  bool is_matrix_product(ValueId v) const {
    const Graph::Node* const n = view_.node_of(v);
    return n && n->op == ops::matmul && view_.spec(n->in[0]).shape.rank() == 2 &&
           view_.spec(n->in[1]).shape.rank() == 2;
  }
  bool same_types(const Graph::Node& n) const {
    return view_.spec(n.in[0]) == view_.spec(n.out[0]) && view_.spec(n.in[1]) == view_.spec(n.out[0]);
  }
  bool sums_rows(const Graph::Node& n) const {
    return view_.spec(n.in[0]).shape.rank() == 2 && n.attrs.as<ReductionAttrs>().axes == Shape{0};
  }

  ValueId transposed(ValueId v) {
    const Graph::Node* const n = view_.node_of(v);
    if (n && n->op == ops::permute) return n->in[0];
    const Shape& s = view_.spec(v).shape;
    return add_view(*ops::permute, PermuteAttrs{{1, 0}}, v, {s[1], s[0]});
  }
  ValueId as_row(ValueId v) {
    const Shape row{1, view_.spec(v).shape.numel()};
    return view_.spec(v).shape == row ? v : add_view(*ops::reshape, ShapeAttrs{row}, v, row);
  }
  ValueId add_view(const Primitive& op, const Attrs& attrs, ValueId v, const Shape& shape) {
    const Graph::Node* const n = view_.node_of(v);
    return to_.graph.add_node(op, attrs, {v}, {shape, view_.spec(v).dtype}, n ? n->scope : Scope());
  }

  const GraphView& view_;
  SummedBody to_;
};

}  // namespace

SummedBody find_terms(const Graph& body, const ScanSignature& s) {
  const GraphView view(body);
  Terms terms(view);
  for (std::size_t k = 0; k < s.sums; ++k) terms.add(k, body.outputs[s.carries + k]);
  return terms.finish();
}

// ---- when operations run: whatever can leave the step does ------------------------------------------------

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

/// Moves nodes of the step to the chunk before or after it, where they can act on many steps at once.
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

  /// Chooses products, reductions and costly functions of the xs, and what follows from them, for `before`.
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

  /// Chooses products that no carry waits for, and what follows from them, for `after`.
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
    // Values that the step needs are computed in the step.
    for (std::size_t i = nodes_.size(); i-- > 0;)
      if (!late[i] && needed_[i] && to_.when[i] == When::step)
        for (const ValueId v : nodes_[i].in) in_step(v);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (late[i]) to_.when[i] = When::after;
  }

  const BodyValues& body_;
  const std::vector<Graph::Node>& nodes_;
  std::vector<ValueId> read_;           ///< rows of sums, and stacks among the results
  std::vector<char> awaited_, needed_;  ///< by node: carries depend on it; anything depends on it
  Stages to_;
};

}  // namespace

Stages choose_stages(const BodyValues& body, const ScanSignature& s, const std::vector<SumTerm>& terms) {
  return Choosing(body, s, terms).run();
}

// ---- one stage written as a graph, for one step or for a chunk of steps -----------------------------------

namespace {

/// Returns the constants of a node with a change in their struct S.
template <class S, class Change>
Attrs changed(const Graph::Node& n, Change change) {
  S constants = n.attrs.as<S>(n.op->name);
  change(constants);
  return constants;
}

Shape moved_up(const Shape& axes, bool keep_first) {
  Shape up;
  if (keep_first) up.push_back(0);
  for (const std::int64_t a : axes) up.push_back(a + 1);
  return up;
}

bool reduces(const Primitive& op) {
  return &op == ops::sum || &op == ops::prod || &op == ops::amax || &op == ops::amin;
}

}  // namespace

bool can_stack(const Graph& g, const Graph::Node& n, const std::function<bool(ValueId)>& differs) {
  constexpr int kMostAxes = 7;  // a further axis must fit
  for (const ValueId v : n.in)
    if (g.values[v].shape.rank() > kMostAxes) return false;
  if (n.out.size() != 1 || g.values[n.out[0]].shape.rank() > kMostAxes) return false;
  if (n.op == ops::matmul)
    return differs(n.in[0]) && !differs(n.in[1]) && g.values[n.in[1]].shape.rank() == 2 &&
           g.values[n.in[0]].shape.rank() == 2;
  if (n.op == ops::concat || n.op == ops::stack) return std::all_of(n.in.begin(), n.in.end(), differs);
  if (n.op == ops::reshape || n.op == ops::permute || n.op == ops::expand || n.op == ops::slice ||
      n.op == ops::contiguous)
    return true;
  return is_elementwise(*n.op) || reduces(*n.op);
}

ScanStage StageWriter::write(std::int64_t chunk, const std::function<bool(ValueId)>& differs) {
  chunk_ = chunk;
  differs_ = differs;
  local_.assign(g_.values.size(), kNoValue);
  needed_.assign(g_.values.size(), 0);
  for (const Out& o : outs_) needed_[o.value] = 1;
  const std::vector<char> nodes = mark_needed(g_, needed_, runs_);
  add_outsiders();
  for (std::size_t i = 0; i < g_.nodes.size(); ++i)
    if (nodes[i]) add(g_.nodes[i]);
  for (const Out& o : outs_) {
    stage_.graph.outputs.push_back(local_[o.value]);
    stage_.out.push_back(o.to);
  }
  return std::move(stage_);
}

void StageWriter::add_outsiders() {
  Graph& to = stage_.graph;
  for (const Graph::Constant& c : g_.constants)
    if (needed_[c.value]) local_[c.value] = to.add_constant(c.tensor);
  for (ValueId v = 0; v < g_.values.size(); ++v) {
    if (!needed_[v] || local_[v] != kNoValue || (view_.producer(v) != kNoNode && runs_(view_.producer(v)))) continue;
    local_[v] = to.add_value(chunk_ && differs_(v) ? stacked(g_.values[v]) : g_.values[v]);
    to.inputs.push_back(local_[v]);
    stage_.in.push_back(outside_(v));
  }
}

Spec StageWriter::stacked(const Spec& s) const { return {with_steps(chunk_, s.shape), s.dtype}; }

void StageWriter::add(const Graph::Node& n) {
  if (chunk_ && std::any_of(n.in.begin(), n.in.end(), differs_)) return stack(n);
  Graph::Node copy = n;
  for (ValueId& v : copy.in) v = local_[v];
  for (ValueId& v : copy.out) {
    local_[v] = stage_.graph.add_value(g_.values[v]);
    v = local_[v];
  }
  stage_.graph.nodes.push_back(std::move(copy));
}

ValueId StageWriter::view(const Primitive& op, const Shape& shape, ValueId v) {
  Graph& to = stage_.graph;
  if (to.values[v].shape == shape) return v;
  const Dtype dtype = to.values[v].dtype;
  return to.add_node(op, ShapeAttrs{shape}, {v}, {shape, dtype}, scope_);
}

/// Returns an operand as a value whose steps have `rank` axes.
ValueId StageWriter::widened(ValueId v, int rank) {
  const ValueId here = local_[v];
  if (!differs_(v)) return here;
  Shape wide{chunk_};
  const Shape& own = g_.values[v].shape;
  for (int k = own.rank(); k < rank; ++k) wide.push_back(1);
  for (const std::int64_t e : own) wide.push_back(e);
  return view(*ops::reshape, wide, here);
}

void StageWriter::stack(const Graph::Node& n) {
  scope_ = n.scope;
  Graph& to = stage_.graph;
  const Spec out = stacked(g_.values[n.out[0]]);
  const int rank = g_.values[n.out[0]].shape.rank();
  ValueId& result = local_[n.out[0]];
  if (n.op == ops::matmul) {  // one product of all rows
    const Shape a = g_.values[n.in[0]].shape;
    const Shape rows{chunk_ * a[0], a[1]};
    const Shape product{rows[0], out.shape[-1]};
    const ValueId flat = view(*ops::reshape, rows, local_[n.in[0]]);
    result = view(*ops::reshape, out.shape,
                  to.add_node(*ops::matmul, {}, {flat, local_[n.in[1]]}, {product, out.dtype}, scope_));
    return;
  }
  if (n.op == ops::reshape) {
    result = view(*ops::reshape, out.shape, local_[n.in[0]]);
    return;
  }
  if (n.op == ops::expand) {
    result = view(*ops::expand, out.shape, widened(n.in[0], rank));
    return;
  }
  Graph::Node copy = n;
  const bool elementwise = is_elementwise(*n.op);
  for (ValueId& v : copy.in) v = elementwise ? widened(v, rank) : local_[v];
  if (n.op == ops::permute)
    copy.attrs = changed<PermuteAttrs>(n, [](PermuteAttrs& a) { a.order = moved_up(a.order, true); });
  if (n.op == ops::slice) copy.attrs = changed<SliceAttrs>(n, [](SliceAttrs& a) { ++a.axis; });
  if (n.op == ops::concat || n.op == ops::stack) copy.attrs = changed<AxisAttrs>(n, [](AxisAttrs& a) { ++a.axis; });
  if (reduces(*n.op))
    copy.attrs = changed<ReductionAttrs>(n, [](ReductionAttrs& a) { a.axes = moved_up(a.axes, false); });
  result = to.add_value(out);
  copy.out[0] = result;
  to.nodes.push_back(std::move(copy));
}

// ---- the stages, and the places of values passed between them ---------------------------------------------

namespace {

/// Writes the stages of a body, and gives every value that one stage passes to another its place.
class PartsWriter {
 public:
  PartsWriter(const BodyValues& body, const Stages& stages, const ScanSignature& s)
      : body_(body),
        g_(body.view().graph()),
        when_(stages.when),
        s_(s),
        places_(g_.values.size()),
        once_(body.view(), runs(When::once), outside()),
        before_(
            body.view(), [&](std::size_t node) { return stages.before_too[node] || when_[node] == When::anywhere; },
            outside()),
        step_(body.view(), runs(When::step), outside()),
        after_(body.view(), runs(When::after),
               [this](ValueId v) { return body_.is_carry(v) ? carries_of_chunk(v) : place(v); }) {
    for (std::size_t k = g_.outputs.size(); k-- > s.carries + s.sums;)
      places_[g_.outputs[k]].y = {Kind::y, k - s.carries - s.sums};
  }

  ScanParts run(const std::vector<SumTerm>& terms, std::int64_t chunk) {
    for (const SumTerm& t : terms) parts_.terms.push_back(term(t));
    for (std::size_t k = 0; k < s_.carries; ++k) step_.give(g_.outputs[k], {Kind::carry, k});
    for (std::size_t k = s_.carries + s_.sums; k < g_.outputs.size(); ++k) {
      const ValueId v = g_.outputs[k];
      const ScanPlace y{Kind::y, k - s_.carries - s_.sums};
      if (body_.is_carry(v)) {
        parts_.carried.emplace_back(body_.input(v).index, y);
      } else {
        writer_of(stage_of_rows(v)).give(v, y);
      }
    }
    const auto differs = [this](ValueId v) { return body_.differs(v); };
    parts_.after = after_.write(chunk, differs);
    parts_.step = step_.write(0, differs);
    parts_.before = before_.write(chunk, differs);
    parts_.once = once_.write(0, differs);
    return std::move(parts_);
  }

 private:
  using Kind = ScanPlace::Kind;
  /// The places of a value: in a result stack, in a chunk, among the values computed once.
  struct Places {
    std::optional<ScanPlace> y{}, chunk{}, once{};
  };

  std::function<bool(std::size_t)> runs(When stage) const {
    return [this, stage](std::size_t node) { return when_[node] == stage || when_[node] == When::anywhere; };
  }
  std::function<ScanPlace(ValueId)> outside() {
    return [this](ValueId v) { return place(v); };
  }
  StageWriter& writer_of(When w) { return w == When::before ? before_ : w == When::after ? after_ : step_; }

  /// Returns the stage that computes a value which is read as rows of all steps.
  When stage_of_rows(ValueId v) const {
    const std::size_t from = body_.differs(v) && body_.views_stack(v) ? body_.source(v) : kNoNode;
    return from == kNoNode ? When::step : when_[from];
  }

  ScanPlace new_chunk(ValueId v) {
    parts_.chunks.push_back(g_.values[v]);
    places_[v].chunk = ScanPlace{Kind::chunk, parts_.chunks.size() - 1};
    return *places_[v].chunk;
  }

  /// Returns a place that all stages after a value's own can read; if it has none yet, its stage gives it one.
  ScanPlace place(ValueId v) {
    if (body_.is_input(v)) return body_.input(v);
    const When w = when_[body_.view().producer(v)];
    Places& at = places_[v];
    if (w == When::once) {
      if (!at.once) once_.give(v, *(at.once = ScanPlace{Kind::once, once_count_++}));
      return *at.once;
    }
    if (at.y && w != When::before) return *at.y;
    if (!at.chunk) writer_of(w).give(v, new_chunk(v));
    return *at.chunk;
  }

  /// Returns the stack of a carry as each step of a chunk finds it.
  ScanPlace carries_of_chunk(ValueId v) {
    if (!places_[v].chunk) parts_.carried.emplace_back(body_.input(v).index, new_chunk(v));
    return *places_[v].chunk;
  }

  /// Returns the place of a value as rows in memory.
  ScanPlace rows(ValueId v) {
    if (body_.is_input(v) && body_.input(v).kind == Kind::x) return body_.input(v);
    if (body_.is_carry(v)) return carries_of_chunk(v);
    const std::size_t p = body_.view().producer(v);
    if (p != kNoNode && when_[p] != When::anywhere && body_.differs(v)) return place(v);
    if (!places_[v].chunk)  // a view, or the same in all steps: a copy
      (stage_of_rows(v) == When::after ? after_ : step_).give(v, new_chunk(v));
    return *places_[v].chunk;
  }

  ScanTerm term(const SumTerm& t) {
    const Spec& b = g_.values[t.b];
    ScanTerm term{.sum = t.sum, .dtype = b.dtype, .rows = b.shape[0], .b_width = b.shape[1], .b = rows(t.b)};
    if (t.a == kNoValue) return term;
    term.a_width = g_.values[t.a].shape[1];
    term.a = rows(t.a);
    return term;
  }

  const BodyValues& body_;
  const Graph& g_;
  const std::vector<When>& when_;
  const ScanSignature& s_;
  std::vector<Places> places_;  ///< by value: see Places
  std::size_t once_count_ = 0;
  StageWriter once_, before_, step_, after_;
  ScanParts parts_;
};

/// Returns the body as it runs, without what only gradients need.
Graph running(const Graph& body) {
  Graph g = body;
  passes::drop_detach(g);
  if (g.nodes.size() < body.nodes.size()) passes::simplify(g);
  return g;
}

}  // namespace

ScanParts take_apart(const ScanBody& body, std::int64_t chunk) {
  const ScanSignature& s = body.signature();
  const SummedBody summed = find_terms(running(body.graph()), s);
  const GraphView view(summed.graph);
  const BodyValues values(view, s);
  const Stages stages = chunk > 0 ? choose_stages(values, s, summed.terms)
                                  : Stages{values.when(), std::vector<char>(summed.graph.nodes.size())};
  return PartsWriter(values, stages, s).run(summed.terms, chunk);
}

}  // namespace ferrite::detail
