/// A body taken apart into its stages, and the places of what they hand to each other.
#include "ferrite/compile/scan/detail/scan_parts.h"

#include "ferrite/compile/graph/rewrite.h"
#include "ferrite/compile/passes.h"
#include "ferrite/compile/scan/detail/stage.h"
#include "ferrite/compile/scan/detail/stages.h"

namespace ferrite::detail {
namespace {

/// Writes the stages of a body, and gives every value that one stage hands to another its place.
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
  /// Where a value stands, as far as it does.
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

  /// The stage that computes a value which is read as rows of all steps.
  When stage_of_rows(ValueId v) const {
    const std::size_t from = body_.differs(v) && body_.views_stack(v) ? body_.source(v) : kNoNode;
    return from == kNoNode ? When::step : when_[from];
  }

  ScanPlace new_chunk(ValueId v) {
    parts_.chunks.push_back(g_.values[v]);
    places_[v].chunk = ScanPlace{Kind::chunk, parts_.chunks.size() - 1};
    return *places_[v].chunk;
  }

  /// A place that all stages after a value's own can read; if it has none yet, its stage gives it one.
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

  /// What a carry is when each step of a chunk begins.
  ScanPlace carries_of_chunk(ValueId v) {
    if (!places_[v].chunk) parts_.carried.emplace_back(body_.input(v).index, new_chunk(v));
    return *places_[v].chunk;
  }

  /// A value as rows that stand in memory.
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
  std::vector<Places> places_;  ///< by value
  std::size_t once_count_ = 0;
  StageWriter once_, before_, step_, after_;
  ScanParts parts_;
};

/// The body as it runs: without what only gradients need.
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
