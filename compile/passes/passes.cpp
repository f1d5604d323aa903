/// Passes over graphs; each keeps the bits of the results.
#include "ferrite/compile/passes.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "ferrite/autograd/lenient_grad.h"
#include "ferrite/compile/graph/graph_text.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

// ---- dead code, and values numbered in order --------------------------------------------------------------

namespace passes {
namespace {

/// Numbers values in order of definition; values that nothing defines are dropped.
void renumber(Graph& g) {
  std::vector<ValueId> to(g.values.size(), detail::kNoValue);
  std::vector<Spec> specs;
  const auto define = [&](ValueId& v) {
    specs.push_back(g.values[v]);
    v = to[v] = static_cast<ValueId>(specs.size() - 1);
  };
  for (ValueId& v : g.inputs) define(v);
  for (Graph::VariableValue& r : g.reads) define(r.value);
  for (Graph::Constant& c : g.constants) define(c.value);
  for (Graph::Node& n : g.nodes) {
    for (ValueId& v : n.in) v = to[v];
    for (ValueId& v : n.out) define(v);
  }
  for (ValueId& v : g.outputs) v = to[v];
  for (Graph::VariableValue& w : g.writes) w.value = to[w.value];
  g.values = std::move(specs);
}

/// Drops variables that are neither read nor written any more.
void drop_variables(Graph& g) {
  constexpr std::uint32_t kGone = ~std::uint32_t{0};
  std::vector<std::uint32_t> to(g.variables.size(), kGone);
  for (const Graph::VariableValue& r : g.reads) to[r.variable] = 0;
  for (const Graph::VariableValue& w : g.writes) to[w.variable] = 0;
  std::vector<Variable> kept;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == kGone) continue;
    to[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(g.variables[i]));
  }
  g.variables = std::move(kept);
  for (Graph::VariableValue& r : g.reads) r.variable = to[r.variable];
  for (Graph::VariableValue& w : g.writes) w.variable = to[w.variable];
}

}  // namespace

void remove_dead_code(Graph& g) {
  std::vector<char> live(g.values.size());
  for (const ValueId v : g.outputs) live[v] = true;
  for (const Graph::VariableValue& w : g.writes) live[w.value] = true;
  const std::vector<char> needed = detail::mark_needed(g, live);
  std::size_t at = 0;
  std::erase_if(g.nodes, [&](const Graph::Node&) { return !needed[at++]; });
  std::erase_if(g.constants, [&](const Graph::Constant& c) { return !live[c.value]; });
  std::erase_if(g.reads, [&](const Graph::VariableValue& r) { return !live[r.value]; });
  drop_variables(g);
  renumber(g);
}

}  // namespace passes

// ---- common subexpressions: equal applications merged, as far as their effects allow ----------------------

namespace detail {

const Body* find_body(const Attrs& attrs) { return dynamic_cast<const Body*>(attrs.body.get()); }

Effects effects_of(const Primitive& op, std::span<const Spec> in, const Attrs& attrs) {
  Effects all;
  if (op.effects) all = op.effects(in, attrs);
  const Body* body = find_body(attrs);
  if (!body) return all;
  all |= effects_of(body->graph());
  all |= {.allocates = true};  // space for what a step leaves
  return all;
}

Effects effects_of(const Graph& g, const Graph::Node& n) {
  InlineVector<Spec, 8> in;
  for (const ValueId v : n.in) in.push_back(g.values[v]);
  return effects_of(*n.op, {in.data(), in.size()}, n.attrs);
}

Effects effects_of(const Graph& g) {
  Effects all;
  for (const Graph::Node& n : g.nodes) all |= effects_of(g, n);
  return all;
}

}  // namespace detail

namespace passes {
namespace {

std::size_t hash_of(const Graph::Node& n) {
  std::size_t h = n.attrs.hash() ^ std::hash<const void*>{}(n.op);
  for (const ValueId v : n.in) h = (h ^ v) * 1099511628211U;
  return h;
}

bool same(const Graph::Node& a, const Graph::Node& b) {
  if (a.op != b.op || a.in.size() != b.in.size()) return false;
  for (std::size_t i = 0; i < a.in.size(); ++i)
    if (a.in[i] != b.in[i]) return false;
  return a.attrs.same_bits(b.attrs);
}

}  // namespace

void merge_common_subexpressions(Graph& g) {
  detail::Substitution to(g.values.size());
  std::unordered_multimap<std::size_t, std::size_t> seen;
  seen.reserve(g.nodes.size());
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    Graph::Node& n = g.nodes[i];
    to.apply(n);
    const std::size_t h = hash_of(n);
    const auto [first, last] = seen.equal_range(h);
    auto at = first;
    while (at != last && !same(g.nodes[at->second], n)) ++at;
    if (at == last || detail::effects_of(g, n).communicates) {
      seen.emplace(h, i);
      continue;
    }
    const Graph::Node& earlier = g.nodes[at->second];
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], earlier.out[k]);
  }
  to.apply_ends(g);
}

// ---- constant folding: what depends on constants alone ----------------------------------------------------

namespace {

constexpr std::int64_t kMostElements = 1 << 14;

/// Returns the one element of a tensor that repeats it, with rank 0.
Tensor element_of(const Tensor& t) { return t.view({}, {}, 0); }

/// Returns a tensor of any shape that repeats one element, without a copy.
Tensor repeated(const Tensor& element, const Shape& shape) {
  return element.view(shape, Shape::filled(shape.rank(), 0), 0);
}

class Folding {
 public:
  explicit Folding(Graph& g) : g_(g), known_(g.values.size()) {
    for (const Graph::Constant& c : g.constants) known_[c.value] = c.tensor;
  }

  void run() {
    const NewFrame frame;
    const KeepDenormals as_anywhere;  // the program may run outside the guard under which it is compiled
    std::vector<Graph::Node> kept;
    kept.reserve(g_.nodes.size());
    for (Graph::Node& n : g_.nodes)
      if (!fold(n)) kept.push_back(std::move(n));
    g_.nodes = std::move(kept);
  }

 private:
  bool fold(const Graph::Node& n) {
    for (const ValueId v : n.in)
      if (!known_[v].defined()) return false;
    if (n.op == detail::ops::full) return fold_full(n);
    if (n.op->is_pointwise() && all_repeat(n)) return fold_repeated(n);
    std::int64_t elements = 0;
    for (const ValueId v : n.out) elements += g_.values[v].shape.numel();
    if (!n.op->view && elements > kMostElements) return false;
    if (detail::effects_of(g_, n).communicates) return false;
    try {
      keep(n, apply(n, n.attrs, [&](ValueId v) { return known_[v]; }));
      return true;
    } catch (const Error&) {  // the operation refuses these constants when the program runs, in its turn
      return false;
    }
  }

  bool fold_full(const Graph::Node& n) {
    auto element = n.attrs.as<detail::FullAttrs>(n.op->name);
    element.shape = {};
    const Tensors one = n.op->apply({}, element);
    keep(n, {repeated(one[0], g_.values[n.out[0]].shape)});
    return true;
  }

  bool all_repeat(const Graph::Node& n) const {
    return std::all_of(n.in.begin(), n.in.end(), [&](ValueId v) { return detail::one_value(known_[v]); });
  }

  bool fold_repeated(const Graph::Node& n) {
    const Tensors one = apply(n, n.attrs, [&](ValueId v) { return element_of(known_[v]); });
    keep(n, {repeated(one[0], g_.values[n.out[0]].shape)});
    return true;
  }

  static Tensors apply(const Graph::Node& n, const Attrs& attrs, auto operand) {
    Tensors operands;
    for (const ValueId v : n.in) operands.push_back(operand(v));
    return n.op->apply(OperandList(operands), attrs);
  }

  void keep(const Graph::Node& n, const Tensors& out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      known_[n.out[i]] = out[i];
      g_.constants.push_back({n.out[i], out[i]});
    }
  }

  Graph& g_;
  std::vector<Tensor> known_;
};

}  // namespace

void fold_constants(Graph& g) { Folding(g).run(); }

// ---- operations that change no bit: neutral elements, views of everything, pairs that cancel --------------

namespace {

/// One pass over the nodes in order; what a node's result equals is decided from nodes before it.
class Simplifying {
 public:
  explicit Simplifying(Graph& g) : g_(g), view_(g), to_(g.values.size()), known_(g.values.size()) {
    for (const Graph::Constant& c : g.constants) known_[c.value] = &c.tensor;
  }

  void run() {
    for (Graph::Node& n : g_.nodes) {
      to_.apply(n);
      if (n.out.size() != 1) continue;
      if (const std::optional<ValueId> same = equal_to(n)) to_.replace(n.out[0], *same);
    }
    to_.apply_ends(g_);
  }

 private:
  /// Returns the value that the node's result equals bit for bit, in shape too.
  std::optional<ValueId> equal_to(const Graph::Node& n) const {
    if (n.in.empty()) return {};
    const ValueId x = n.in[0];
    if (n.op == detail::ops::contiguous) return x;
    if ((n.op == detail::ops::reshape || n.op == detail::ops::expand) && same_type(x, n)) return x;
    if (n.op == detail::ops::permute && in_order(n.attrs.as<detail::PermuteAttrs>().order)) return x;
    if (n.op == detail::ops::cast) return cast_back(n);
    if (n.op == detail::ops::neg) return operand_of(x, detail::ops::neg);  // flips the sign bit, also of zeros and NaN
    if (n.op == detail::ops::mul) return neutral(n, 1.0, true);
    if (n.op == detail::ops::div) return neutral(n, 1.0, false);
    if (n.op == detail::ops::add) return neutral(n, -0.0, true);
    if (n.op == detail::ops::sub) return neutral(n, 0.0, false);
    return {};
  }

  bool same_type(ValueId v, const Graph::Node& n) const { return g_.values[v] == g_.values[n.out[0]]; }

  static bool in_order(const Shape& order) {
    for (int i = 0; i < order.rank(); ++i)
      if (order[i] != i) return false;
    return true;
  }

  std::optional<ValueId> operand_of(ValueId v, const Primitive* op) const {
    const Graph::Node* n = view_.node_of(v);
    if (!n || n->op != op) return {};
    return n->in[0];
  }

  /// Returns the value that is cast to a wider type and back.
  std::optional<ValueId> cast_back(const Graph::Node& n) const {
    const std::optional<ValueId> x = operand_of(n.in[0], n.op);
    if (!x || !same_type(*x, n)) return {};
    const Dtype narrow = g_.values[*x].dtype;
    const Dtype wide = g_.values[n.in[0]].dtype;
    const bool exact = (narrow == Dtype::f32 && wide == Dtype::f64) || (narrow == Dtype::i32 && wide == Dtype::i64) ||
                       (narrow == Dtype::i32 && wide == Dtype::f64) || narrow == Dtype::boolean;
    return exact ? x : std::nullopt;
  }

  /// Returns x if the other operand is the neutral element (by its bits) and does not change the shape. Integers have
  /// no -0.
  std::optional<ValueId> neutral(const Graph::Node& n, double element, bool commutes) const {
    if (!is_float(g_.values[n.out[0]].dtype)) return {};
    const auto is_neutral = [&](double v) { return v == element && std::signbit(v) == std::signbit(element); };
    if (n.in.size() == 1) {
      const Scalar* const first = detail::literal_of(n.attrs, 0);
      const Scalar* const second = detail::literal_of(n.attrs, 1);
      const Scalar* const literal = second ? second : commutes ? first : nullptr;
      return literal && is_neutral(literal->real()) ? std::optional(n.in[0]) : std::nullopt;
    }
    if (n.in.size() != 2) return {};
    if (same_type(n.in[0], n) && repeats(n.in[1], is_neutral)) return n.in[0];
    if (commutes && same_type(n.in[1], n) && repeats(n.in[0], is_neutral)) return n.in[1];
    return {};
  }

  bool repeats(ValueId v, const auto& wanted) const {
    const Tensor* t = known_[v];
    if (!t || !detail::one_value(*t)) return false;
    return wanted(t->dtype() == Dtype::f32 ? static_cast<double>(*t->data<float>()) : *t->data<double>());
  }

  Graph& g_;
  detail::GraphView view_;
  detail::Substitution to_;
  std::vector<const Tensor*> known_;  ///< by value: its constant, or null
};

}  // namespace

void simplify_exactly(Graph& g) { Simplifying(g).run(); }

namespace {

/// Drops the nodes for which `goes` holds: each is replaced by its last operand.
template <class Goes>
void drop(Graph& g, const Goes& goes) {
  if (std::ranges::none_of(g.nodes, goes)) return;
  detail::Substitution to(g.values.size());
  detail::rewrite_nodes(g, to, [&](Graph::Node& n) {
    if (!goes(n)) return g.nodes.push_back(std::move(n));
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], n.in[n.in.size() - n.out.size() + k]);
  });
}

}  // namespace

void drop_detach(Graph& g) {
  drop(g, [](const Graph::Node& n) { return n.op == detail::ops::detach || detail::is_custom_gradient(*n.op); });
}

void drop_recompute(Graph& g) {
  drop(g, [](const Graph::Node& n) { return n.op == &detail::recompute_primitive(); });
}

void simplify(Graph& g) {
  expand_composites(g);
  remove_dead_code(g);
  simplify_scans(g);
  fold_constants(g);
  simplify_exactly(g);
  join_padded_sums(g);
  sink_gathers(g);
  merge_common_subexpressions(g);
  remove_dead_code(g);
}

// ---- gathers before computing: elements of the operands in place of those of a pointwise result -----------

namespace {

constexpr int kMostDepth = 8;
constexpr std::int64_t kFewer = 4;  ///< minimum ratio of the elements that exist to those that are picked

/// Picks elements from the operands instead of from the result.
class Sinking {
 public:
  explicit Sinking(Graph& g) : g_(g), view_(g), old_(std::move(g.nodes)), to_(g.values.size()) { g_.nodes.clear(); }

  void run() {
    for (const Graph::Node& n : old_) {
      if (n.op == detail::ops::gather && few(n)) {
        gather_ = n;
        gather_.in[1] = to_[n.in[1]];
        to_.replace(n.out[0], picked(n.in[0], kMostDepth));
        continue;
      }
      g_.nodes.push_back(n);
      to_.apply(g_.nodes.back());
    }
    to_.apply_ends(g_);
  }

 private:
  bool few(const Graph::Node& n) const {
    return is_pointwise(n.in[0]) && g_.values[n.out[0]].shape.numel() * kFewer <= g_.values[n.in[0]].shape.numel();
  }
  bool is_pointwise(ValueId v) const {
    const std::size_t p = view_.producer(v);
    return p != detail::kNoNode && old_[p].op->is_pointwise();
  }

  /// Returns the elements of v at the picked places.
  ValueId picked(ValueId v, int depth) {
    const Spec spec = g_.values[v];
    const Shape index = g_.values[gather_.in[1]].shape;  // copied, because `values` grows meanwhile
    if (depth == 0 || !is_pointwise(v)) {
      return g_.add_node(*gather_.op, gather_.attrs, {to_[v], gather_.in[1]}, {index, spec.dtype}, gather_.scope);
    }
    const Graph::Node& n = old_[view_.producer(v)];
    Graph::Node smaller;
    smaller.op = n.op;
    smaller.attrs = n.attrs;
    smaller.scope = n.scope;
    for (const ValueId x : n.in) smaller.in.push_back(operand(x, spec.shape, depth));
    smaller.out.push_back(g_.add_value({index, spec.dtype}));
    g_.nodes.push_back(smaller);
    return smaller.out[0];
  }

  /// Returns the operand x for picked results. An operand that is the same along the axis needs no picking.
  ValueId operand(ValueId x, const Shape& shape, int depth) {
    if (g_.values[x].shape == shape) return picked(x, depth - 1);
    const Shape index = g_.values[gather_.in[1]].shape;  // copied, because `values` grows meanwhile
    const Shape own = g_.values[x].shape;
    const int axis = gather_.attrs.as<detail::AxisAttrs>("gather").axis;
    const int lead = shape.rank() - own.rank();
    bool same = axis < lead || own[axis - lead] == 1;
    for (int a = 0; a < shape.rank(); ++a) same = same && (a == axis || index[a] == shape[a]);
    if (same) return to_[x];
    const ValueId wide = g_.add_node(*detail::ops::expand, detail::ShapeAttrs{shape}, {to_[x]},
                                     {shape, g_.values[x].dtype}, gather_.scope);
    return g_.add_node(*gather_.op, gather_.attrs, {wide, gather_.in[1]}, {index, g_.values[x].dtype}, gather_.scope);
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<Graph::Node> old_;
  detail::Substitution to_;
  Graph::Node gather_;
};

}  // namespace

void sink_gathers(Graph& g) { Sinking(g).run(); }

// ---- sums of adjacent zero-padded pieces, as one concatenation --------------------------------------------

namespace {

/// Pieces along one axis, with zeros between them.
struct Pieces {
  struct Piece {
    std::int64_t begin, end;
    ValueId value;
  };
  int axis = 0;
  std::vector<Piece> list;  ///< in ascending order, disjoint
};

/// Returns the piece of a value that is padded with zeros along one axis only.
std::optional<Pieces> padded(const Graph& g, const Graph::Node& n) {
  if (n.op != detail::ops::pad || !is_float(g.values[n.out[0]].dtype)) return {};
  const auto [before, after, fill] = n.attrs.as<detail::PadAttrs>();
  if (fill.real() != 0 || std::signbit(fill.real())) return {};
  Pieces p;
  int axes = 0;
  for (int i = 0; i < before.rank(); ++i) {
    if (before[i] < 0 || after[i] < 0) return {};
    if (before[i] == 0 && after[i] == 0) continue;
    p.axis = i;
    ++axes;
  }
  if (axes != 1) return {};
  const std::int64_t extent = g.values[n.in[0]].shape[p.axis];
  p.list.push_back({before[p.axis], before[p.axis] + extent, n.in[0]});
  return p;
}

std::optional<Pieces> joined(const Pieces& a, const Pieces& b) {
  if (a.axis != b.axis) return {};
  Pieces all = a;
  all.list.insert(all.list.end(), b.list.begin(), b.list.end());
  std::sort(all.list.begin(), all.list.end(), [](const auto& x, const auto& y) { return x.begin < y.begin; });
  for (std::size_t i = 1; i < all.list.size(); ++i)
    if (all.list[i].begin < all.list[i - 1].end) return {};
  return all;
}

class Joining {
 public:
  explicit Joining(Graph& g)
      : g_(g),
        view_(g),
        pieces_(g.values.size()),
        sum_(g.values.size()),
        absorbed_(g.values.size()),
        to_(g.values.size()) {}

  void run() {
    find();
    detail::rewrite_nodes(g_, to_, [&](Graph::Node& n) {
      const ValueId v = n.out[0];
      if (!sum_[v] || absorbed_[v]) return g_.nodes.push_back(std::move(n));
      to_.replace(v, concatenation(*pieces_[v], Spec(g_.values[v]), n.scope));
    });
  }

 private:
  void find() {
    for (const Graph::Node& n : g_.nodes) {
      const ValueId v = n.out[0];
      if (std::optional<Pieces> p = padded(g_, n)) pieces_[v] = std::move(p);
      if (n.op != detail::ops::add || n.in.size() != 2) continue;
      const ValueId a = n.in[0];
      const ValueId b = n.in[1];
      if (!pieces_[a] || !pieces_[b] || view_.uses(a) != 1 || view_.uses(b) != 1 || g_.values[a] != g_.values[b])
        continue;
      pieces_[v] = joined(*pieces_[a], *pieces_[b]);
      if (!pieces_[v]) continue;
      sum_[v] = true;
      absorbed_[a] = absorbed_[b] = true;
    }
  }

  ValueId concatenation(const Pieces& p, const Spec& spec, Scope scope) {
    Graph::Node n;
    n.scope = scope;
    n.op = detail::ops::concat;
    n.attrs = detail::AxisAttrs{p.axis};
    std::int64_t at = 0;
    const auto gap = [&](std::int64_t end) {
      if (at < end) n.in.push_back(zeros_of(spec, p.axis, end - at));
    };
    for (const Pieces::Piece& piece : p.list) {
      gap(piece.begin);
      const ValueId x = to_[piece.value];
      n.in.push_back(
          g_.add_node(*detail::ops::add, detail::Literals{.b = Scalar(0.0)}, {x}, Spec(g_.values[x]), scope));
      at = piece.end;
    }
    gap(spec.shape[p.axis]);
    if (n.in.size() == 1) return n.in[0];
    const ValueId v = g_.add_value(spec);
    n.out.push_back(v);
    g_.nodes.push_back(std::move(n));
    return v;
  }

  ValueId zeros_of(const Spec& spec, int axis, std::int64_t extent) {
    Spec s = spec;
    s.shape[axis] = extent;
    const Tensor zero = visit_dtype(s.dtype, [](auto z) {
      using T = decltype(z);
      return Tensor::build<T>({}, [](std::span<T> to) { to[0] = T(0); });
    });
    return g_.add_constant(zero.view(s.shape, Shape::filled(s.shape.rank(), 0), 0));
  }

  Graph& g_;
  detail::GraphView view_;
  std::vector<std::optional<Pieces>> pieces_;
  std::vector<char> sum_;       ///< by value: it is a sum of such pieces
  std::vector<char> absorbed_;  ///< by value: it is part of a larger sum
  detail::Substitution to_;
};

}  // namespace

void join_padded_sums(Graph& g) { Joining(g).run(); }

// ---- composites that are single nodes, as the operations that define them ---------------------------------

namespace {

bool is_composite(const Graph::Node& n) { return n.op->is_composite(); }

/// Expands composites by one level: composites are made of composites.
void expand_once(Graph& g) {
  detail::Substitution to(g.values.size());
  detail::rewrite_nodes(g, to, [&](Graph::Node& n) {
    if (!is_composite(n)) return g.nodes.push_back(std::move(n));
    std::vector<Spec> types;
    for (const ValueId v : n.in) types.push_back(g.values[v]);
    const Graph parts = trace([&](const Tensors& in) { return n.op->reference(OperandList(in), n.attrs); }, types);
    const std::vector<ValueId> out = detail::splice(g, parts, {n.in.data(), n.in.size()}, n.scope);
    for (std::size_t k = 0; k < n.out.size(); ++k) to.replace(n.out[k], out[k]);
  });
}

}  // namespace

void expand_composites(Graph& g) {
  while (std::any_of(g.nodes.begin(), g.nodes.end(), is_composite)) expand_once(g);
}

}  // namespace passes
}  // namespace ferrite
