#include "ferrite/compile/scan/detail/parts.h"

#include <algorithm>

#include "ferrite/compile/fuse/fusion.h"
#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan/detail/stage.h"

namespace ferrite::detail {
namespace {

constexpr char kOnCarry = 1, kOnX = 2;
constexpr std::size_t kNoNode = StageWriter::kNoNode;

/// Decides for every node when it runs, then writes the stages.
class TakingApart {
 public:
  TakingApart(const ScanBody& body, std::int64_t chunk) : body_(body), chunk_(chunk), g_(body.graph()) {
    const std::size_t nodes = g_.nodes.size();
    passes::drop_detach(g_);
    if (g_.nodes.size() < nodes) passes::simplify(g_);
  }

  ScanParts run() {
    const ScanSignature& s = body_.signature();
    for (std::size_t k = 0; k < s.sums; ++k) add_terms(k, g_.outputs[s.carries + k]);
    find_makers();
    place_ends();
    choose_before();
    choose_after();
    write();
    return std::move(parts_);
  }

 private:
  enum class When : std::uint8_t { once, before, step, after, anywhere };

  struct Term {
    std::size_t sum;
    ValueId a, b;
  };

  // ---- sums ----------------------------------------------------------------------------------------------

  const Graph::Node* maker_in_body(ValueId v) const {
    for (const Graph::Node& n : g_.nodes)
      for (const ValueId o : n.out)
        if (o == v) return &n;
    return nullptr;
  }

  void add_terms(std::size_t sum, ValueId v) {
    const Graph::Node* n = maker_in_body(v);
    if (n && n->op == ops::add && n->in.size() == 2 && same_shapes(*n)) {
      const ValueId a = n->in[0], b = n->in[1];
      add_terms(sum, a);
      add_terms(sum, b);
    } else if (n && n->op == ops::permute && is_matrix_product(n->in[0])) {  // (a^T b)^T = b^T a
      const Graph::Node product = *maker_in_body(n->in[0]);
      terms_.push_back({sum, product.in[1], turned(product.in[0])});
    } else if (n && n->op == ops::reshape) {
      add_terms(sum, n->in[0]);
    } else if (is_matrix_product(v)) {
      const ValueId b = n->in[1];
      terms_.push_back({sum, turned(n->in[0]), b});
    } else if (n && n->op == ops::sum && sums_rows(*n)) {
      terms_.push_back({sum, kNoValue, n->in[0]});
    } else {
      const Shape row{1, g_.values[v].shape.numel()};
      const Dtype dtype = g_.values[v].dtype;
      const bool is_row = g_.values[v].shape == row;
      terms_.push_back(
          {sum, kNoValue, is_row ? v : g_.add_node(*ops::reshape, ShapeAttrs{row}, {v}, {row, dtype}, scope_of(v))});
    }
  }
  Scope scope_of(ValueId v) const {
    const Graph::Node* n = maker_in_body(v);
    return n ? n->scope : Scope();
  }
  bool is_matrix_product(ValueId v) const {
    const Graph::Node* n = maker_in_body(v);
    return n && n->op == ops::matmul && g_.values[n->in[0]].shape.rank() == 2 && g_.values[n->in[1]].shape.rank() == 2;
  }
  bool same_shapes(const Graph::Node& n) const {
    return g_.values[n.in[0]] == g_.values[n.out[0]] && g_.values[n.in[1]] == g_.values[n.out[0]];
  }
  bool sums_rows(const Graph::Node& n) const {
    return g_.values[n.in[0]].shape.rank() == 2 && n.attrs.as<ReductionAttrs>().axes == Shape{0};
  }
  /// The transpose.
  ValueId turned(ValueId v) {
    if (const Graph::Node* n = maker_in_body(v); n && n->op == ops::permute) return n->in[0];
    const Spec s = g_.values[v];
    return g_.add_node(*ops::permute, PermuteAttrs{{1, 0}}, {v}, {{s.shape[1], s.shape[0]}, s.dtype}, scope_of(v));
  }

  // ---- when ----------------------------------------------------------------------------------------------

  void find_makers() {
    const ScanSignature& s = body_.signature();
    maker_.assign(g_.values.size(), kNoNode);
    depends_.assign(g_.values.size(), 0);
    input_.assign(g_.values.size(), {});
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const ValueId v = g_.inputs[i];
      const bool carry = i < s.carries, x = !carry && i < s.carries + s.xs;
      depends_[v] = carry ? kOnCarry : x ? kOnX : 0;
      input_[v] = {carry ? ScanPlace::Kind::carry
                   : x   ? ScanPlace::Kind::x
                         : ScanPlace::Kind::capture,
                   i - (carry ? 0
                        : x   ? s.carries
                              : s.carries + s.xs)};
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      char on = 0;
      for (const ValueId v : g_.nodes[i].in) on = static_cast<char>(on | depends_[v]);
      for (const ValueId v : g_.nodes[i].out) {
        maker_[v] = i;
        depends_[v] = on;
      }
    }
    find_needed();
    when_.resize(g_.nodes.size());
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Graph::Node& n = g_.nodes[i];
      const bool communicates = effects_of(g_, n).communicates;
      const bool free = !communicates && (n.in.empty() || n.op->is_view() || n.op == ops::reshape);
      const bool same = !communicates && depends_[n.out[0]] == 0;
      when_[i] = free ? When::anywhere : same ? When::once : When::step;
    }
  }

  /// Terms of sums are not computed as such.
  void find_needed() {
    const ScanSignature& s = body_.signature();
    needed_.assign(g_.nodes.size(), false);
    const auto need = [&](ValueId v) {
      if (v != kNoValue && maker_[v] != kNoNode) needed_[maker_[v]] = true;
    };
    for (std::size_t k = 0; k < g_.outputs.size(); ++k)
      if (k < s.carries || k >= s.carries + s.sums) need(g_.outputs[k]);
    for (const Term& t : terms_) {
      need(t.a);
      need(t.b);
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (effects_of(g_, g_.nodes[i]).must_run()) needed_[i] = true;
    for (std::size_t i = g_.nodes.size(); i-- > 0;)
      if (needed_[i])
        for (const ValueId v : g_.nodes[i].in) need(v);
  }

  bool is_batched(ValueId v) const { return depends_[v] != 0; }
  bool can_batch(const Graph::Node& n) const {
    return can_stack(g_, n, [&](ValueId v) { return is_batched(v); });
  }

  /// The node that computes what v is a view of; kNoNode for an input or a constant.
  std::size_t root(ValueId v) const {
    while (maker_[v] != kNoNode && when_[maker_[v]] == When::anywhere && !g_.nodes[maker_[v]].in.empty())
      v = g_.nodes[maker_[v]].in[0];
    return maker_[v];
  }
  bool views_batch(ValueId v) const {
    for (; maker_[v] != kNoNode && when_[maker_[v]] == When::anywhere; v = g_.nodes[maker_[v]].in[0]) {
      if (g_.nodes[maker_[v]].in.empty()) return true;
      if (is_batched(v) && !can_batch(g_.nodes[maker_[v]])) return false;
    }
    return true;
  }

  /// Products, reductions and costly functions of the xs, and what follows from these: for a chunk at once.
  void choose_before() {
    std::vector<char>& can = before_too_;
    can.assign(g_.nodes.size(), false);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Graph::Node& n = g_.nodes[i];
      if (!needed_[i] || when_[i] != When::step || depends_[n.out[0]] != kOnX || !can_batch(n)) continue;
      bool ready = true, follows = false;
      for (const ValueId v : n.in) {
        const std::size_t from = root(v);
        ready &= views_batch(v) && (!is_batched(v) || from == kNoNode || can[from]);
        follows |= from != kNoNode && when_[from] == When::before;
      }
      can[i] = ready;
      const bool cheap =
          n.op == ops::add || n.op == ops::sub || n.op == ops::mul || n.op == ops::neg || n.op == ops::cast;
      if (ready && (follows || !cheap)) when_[i] = When::before;
    }
  }

  /// Products that no carry waits for, and what follows from these.
  void choose_after() {
    std::vector<char> awaited(g_.nodes.size());
    const auto await = [&](ValueId v) {
      if (maker_[v] != kNoNode) awaited[maker_[v]] = true;
    };
    for (std::size_t k = 0; k < body_.signature().carries; ++k) await(g_.outputs[k]);
    for (std::size_t i = g_.nodes.size(); i-- > 0;)
      if (awaited[i])
        for (const ValueId v : g_.nodes[i].in) await(v);
    std::vector<char> late(g_.nodes.size());
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Graph::Node& n = g_.nodes[i];
      if (!needed_[i] || when_[i] != When::step || awaited[i] || !can_batch(n)) continue;
      bool ready = true, follows = false;
      for (const ValueId v : n.in) {
        ready &= views_batch(v);
        const std::size_t from = root(v);
        follows |= from != kNoNode && late[from];
      }
      late[i] = ready && (follows || n.op == ops::matmul);
    }
    // Sums and stacks read some results through views that act on one step alone.
    const auto in_step = [&](ValueId v) {
      if (const std::size_t from = v == kNoValue || views_batch(v) ? kNoNode : root(v); from != kNoNode)
        late[from] = false;
    };
    for (std::size_t k = body_.signature().carries + body_.signature().sums; k < g_.outputs.size(); ++k)
      in_step(g_.outputs[k]);
    for (const Term& t : terms_) {
      in_step(t.a);
      in_step(t.b);
    }
    // What a step needs is computed in the step.
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      if (late[i] || !needed_[i] || when_[i] != When::step) continue;
      for (const ValueId v : g_.nodes[i].in)
        for (std::size_t from = root(v); from != kNoNode && late[from]; from = kNoNode) late[from] = false;
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i)
      if (late[i]) when_[i] = When::after;
  }

  // ---- writing -------------------------------------------------------------------------------------------

  void place_ends() {
    const ScanSignature& s = body_.signature();
    y_of_.assign(g_.values.size(), kNoNode);
    for (std::size_t k = s.carries + s.sums; k < g_.outputs.size(); ++k)
      if (y_of_[g_.outputs[k]] == kNoNode) y_of_[g_.outputs[k]] = k - s.carries - s.sums;
    chunk_of_.assign(g_.values.size(), kNoNode);
    once_of_.assign(g_.values.size(), kNoNode);
  }

  /// Where a value that is read as rows of all steps is written.
  When home(ValueId v) const {
    const std::size_t from = is_batched(v) && views_batch(v) ? root(v) : kNoNode;
    return from == kNoNode ? When::step : when_[from];
  }

  /// A value with a place that all stages after its own can read; if it has none yet, its stage gives it one.
  ScanPlace place(ValueId v, StageWriter* by) {
    if (maker_[v] == kNoNode) return input_[v];
    if (when_[maker_[v]] == When::once) {
      if (once_of_[v] == kNoNode) {
        once_of_[v] = once_count_++;
        once_->give(v, {ScanPlace::Kind::once, once_of_[v]});
      }
      return {ScanPlace::Kind::once, once_of_[v]};
    }
    if (y_of_[v] != kNoNode && by != before_) return {ScanPlace::Kind::y, y_of_[v]};
    if (chunk_of_[v] == kNoNode) {
      chunk_of_[v] = parts_.chunks.size();
      parts_.chunks.push_back(g_.values[v]);
      by->give(v, {ScanPlace::Kind::chunk, chunk_of_[v]});
    }
    return {ScanPlace::Kind::chunk, chunk_of_[v]};
  }
  StageWriter* writer_of(When w) const { return w == When::before ? before_ : w == When::after ? after_ : step_; }

  void write() {
    const auto runs = [this](When stage) {
      return [this, stage](std::size_t node) { return when_[node] == stage || when_[node] == When::anywhere; };
    };
    const auto outside = [this](ValueId v) {
      return place(v, maker_[v] == kNoNode ? step_ : writer_of(when_[maker_[v]]));
    };
    const auto outside_after = [&](ValueId v) { return is_carry(v) ? carries_of_chunk(v) : outside(v); };
    const auto batched = [this](ValueId v) { return is_batched(v); };
    const auto runs_before = [this](std::size_t node) { return before_too_[node] || when_[node] == When::anywhere; };
    StageWriter once(g_, maker_, runs(When::once), outside), before(g_, maker_, runs_before, outside),
        step(g_, maker_, runs(When::step), outside), after(g_, maker_, runs(When::after), outside_after);
    once_ = &once, before_ = &before, step_ = &step, after_ = &after;
    const ScanSignature& s = body_.signature();
    for (const Term& t : terms_) add(t);
    for (std::size_t k = 0; k < s.carries; ++k) step.give(g_.outputs[k], {ScanPlace::Kind::carry, k});
    for (std::size_t k = s.carries + s.sums; k < g_.outputs.size(); ++k) {
      const ValueId v = g_.outputs[k];
      const ScanPlace y{ScanPlace::Kind::y, k - s.carries - s.sums};
      if (maker_[v] == kNoNode && input_[v].kind == ScanPlace::Kind::carry && depends_[v] == kOnCarry) {
        parts_.carried.emplace_back(input_[v].index, y);
        continue;
      }
      writer_of(home(v))->give(v, y);
    }
    parts_.after = after.write(chunk_, batched);
    parts_.step = step.write(0, batched);
    parts_.before = before.write(chunk_, batched);
    parts_.once = once.write(0, batched);
  }

  void add(const Term& t) {
    ScanTerm term;
    term.sum = t.sum;
    term.dtype = g_.values[t.b].dtype;
    const Shape& b = g_.values[t.b].shape;
    term.rows = b[0];
    term.b_width = b[1];
    term.b = rows(t.b);
    if (t.a != kNoValue) term.a_width = g_.values[t.a].shape[1];
    if (t.a != kNoValue) term.a = rows(t.a);
    parts_.terms.push_back(term);
  }
  bool is_carry(ValueId v) const { return maker_[v] == kNoNode && depends_[v] == kOnCarry; }
  /// What a carry is when each step of a chunk begins.
  ScanPlace carries_of_chunk(ValueId v) {
    if (chunk_of_[v] == kNoNode) {
      chunk_of_[v] = parts_.chunks.size();
      parts_.chunks.push_back(g_.values[v]);
      parts_.carried.emplace_back(input_[v].index, ScanPlace{ScanPlace::Kind::chunk, chunk_of_[v]});
    }
    return {ScanPlace::Kind::chunk, chunk_of_[v]};
  }
  /// A value as rows that stand in memory.
  ScanPlace rows(ValueId v) {
    if (maker_[v] == kNoNode && input_[v].kind == ScanPlace::Kind::x) return input_[v];
    if (is_carry(v)) return carries_of_chunk(v);
    const When w = home(v);
    StageWriter* const by = writer_of(w);
    if (maker_[v] != kNoNode && when_[maker_[v]] != When::anywhere && is_batched(v)) return place(v, by);
    if (chunk_of_[v] == kNoNode) {  // a view, a carry, or the same in all steps: a copy
      chunk_of_[v] = parts_.chunks.size();
      parts_.chunks.push_back(g_.values[v]);
      (w == When::after ? after_ : step_)->give(v, {ScanPlace::Kind::chunk, chunk_of_[v]});
    }
    return {ScanPlace::Kind::chunk, chunk_of_[v]};
  }

  const ScanBody& body_;
  std::int64_t chunk_;
  Graph g_;
  std::vector<Term> terms_;
  std::vector<std::size_t> maker_;
  std::vector<char> depends_, needed_;
  std::vector<char> before_too_;  ///< by node: what `before` may compute, cheap operations for its own use
  std::vector<ScanPlace> input_;
  std::vector<When> when_;
  std::vector<std::size_t> y_of_, chunk_of_, once_of_;
  std::size_t once_count_ = 0;
  StageWriter *once_ = nullptr, *before_ = nullptr, *step_ = nullptr, *after_ = nullptr;
  ScanParts parts_;
};

}  // namespace

ScanParts take_apart(const ScanBody& body, std::int64_t chunk) { return TakingApart(body, chunk).run(); }

}  // namespace ferrite::detail
