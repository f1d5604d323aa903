/// Finds the lowering of an operation: by name, by function, by reference, or a refusal.
#include "ferrite/exchange/stablehlo/lowering.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/detail/live_values.h"
#include "ferrite/exchange/stablehlo.h"

namespace ferrite::exchange {
namespace {

constexpr std::string_view kDraws =
    "its numbers are those of Philox4x32-10 with a counter for each element; StableHLO's generators give others";
constexpr std::string_view kDrawsHint =
    "draw outside of the traced function and give the numbers as an input; dropout is the identity in evaluation";

constexpr std::string_view kFourier =
    "StableHLO's fft takes and gives complex numbers, a type that programs here do not have";
constexpr std::string_view kFourierHint = "export the functions before and behind it";

constexpr std::string_view kSpecial = "it is a function of CHLO, the dialect above StableHLO";
constexpr std::string_view kSpecialHint = "export the functions before and behind it";
constexpr std::string_view kSigns = "StableHLO has no way to read the sign of a zero";
constexpr std::string_view kSignsHint = "choose by a comparison with 0, which takes no notice of it";

constexpr std::string_view kElimination = "StableHLO has no pivots, reflections or rotations but in custom calls";
constexpr std::string_view kEliminationHint = "compute it outside of the traced function and give it as an input";

constexpr std::string_view kRuns = "running functions round in f64, which loops and windows of StableHLO do not";
constexpr std::string_view kRunsHint = "write the steps with `scan`, which is exported as a loop";
constexpr std::string_view kOrders =
    "its order of equal elements, of 0 and -0 and of NaN is not that of StableHLO's sort";
constexpr std::string_view kOrdersHint = "compute it outside of the exported function and give the indices as an input";
constexpr std::string_view kRepeats =
    "where an index is repeated, StableHLO leaves the order of updates to the implementation";
constexpr std::string_view kRepeatsHint = "use scatter_add, or where with a mask";

constexpr StablehloRefusal kRefusals[] = {
    {"uniform", kDraws, kDrawsHint},
    {"normal", kDraws, kDrawsHint},
    {"rfft", kFourier, kFourierHint},
    {"irfft", kFourier, kFourierHint},
    {"fft", kFourier, kFourierHint},
    {"solve", kElimination, kEliminationHint},
    {"solve_triangular", kElimination, kEliminationHint},
    {"det", kElimination, kEliminationHint},
    {"slogdet", kElimination, kEliminationHint},
    {"cholesky", kElimination, kEliminationHint},
    {"qr", kElimination, kEliminationHint},
    {"eigh", kElimination, kEliminationHint},
    {"copysign", kSigns, kSignsHint},
    {"digamma", kSpecial, kSpecialHint},
    {"erfinv", kSpecial, kSpecialHint},
    {"lgamma", kSpecial, kSpecialHint},
    {"polygamma", kSpecial, kSpecialHint},
    {"trigamma", kSpecial, kSpecialHint},
    {"beta", kDraws, kDrawsHint},
    {"exponential", kDraws, kDrawsHint},
    {"gamma", kDraws, kDrawsHint},
    {"gumbel", kDraws, kDrawsHint},
    {"laplace", kDraws, kDrawsHint},
    {"multinomial", kDraws, kDrawsHint},
    {"permutation", kDraws, kDrawsHint},
    {"poisson", kDraws, kDrawsHint},
    {"randint", kDraws, kDrawsHint},
    {"truncated_normal", kDraws, kDrawsHint},
    {"filter_logits", "it sorts rows and keeps some of them", "filter outside of the traced function"},
    {"cumsum", kRuns, kRunsHint},
    {"cumprod", kRuns, kRunsHint},
    {"linear_recurrence", kRuns, kRunsHint},
    {"cummax", kRuns, kRunsHint},
    {"cummin", kRuns, kRunsHint},
    {"logcumsumexp", kRuns, kRunsHint},
    {"sort", kOrders, kOrdersHint},
    {"topk", kOrders, kOrdersHint},
    {"rank_index", kOrders, kOrdersHint},
    {"searchsorted", kOrders, kOrdersHint},
    {"nonzero", kOrders, kOrdersHint},
    {"scatter", kRepeats, kRepeatsHint},
    {"scatter_extremum", kRepeats, kRepeatsHint},
    {"scatter_prod", kRepeats, kRepeatsHint},
    {"scatter_prod_others", kRepeats, kRepeatsHint}};

const StablehloRefusal* find_refusal(const Primitive& op) {
  for (const StablehloRefusal& r : kRefusals)
    if (r.operation == op.name) return &r;
  return nullptr;
}

}  // namespace

std::span<const StablehloRefusal> stablehlo_refusals() { return kRefusals; }
bool has_stablehlo(const Primitive& op) { return !find_refusal(op) && detail::find_hlo_lowering(op) != nullptr; }

namespace detail {
namespace {

[[noreturn]] void refuse(const Primitive& op, std::string_view what, std::string_view hint) {
  throw ExportError("to_stablehlo: no lowering of " + std::string(op.name) + ": " + std::string(what) + "; " +
                    std::string(hint));
}

HloValues elementwise(HloBuilder& b, const HloCall& c) { return {b.elementwise(c.op.stablehlo, c.in)}; }

HloValues composition(HloBuilder& b, const HloCall& c) {
  const auto apply = [&](const Tensors& in) { return c.op.reference(OperandList(in), c.attrs); };
  return lower_traced(b, apply, c.in);
}

HloValues composed(HloBuilder& b, const HloCall& c) {
  const Composition compose = find_composition(c.op);
  return lower_traced(
      b,
      [&](const Tensors& in) {
        return compose({c.attrs, c.out}, in);
      },
      c.in, c.read);
}

/// The operands of a pointwise operation, literals among them, in the result's shape.
HloValues spread(HloBuilder& b, const Graph::Node& n, const HloValues& in, const Spec& out) {
  const Dtype literals = out.dtype == Dtype::boolean ? in[0].dtype() : out.dtype;
  HloValues all;
  std::size_t next = 0;
  for (int k = 0; k < n.op->arity; ++k) {
    const Scalar* literal = ferrite::detail::literal_of(n.attrs, static_cast<std::size_t>(k));
    all.push_back(literal ? b.constant(*literal, {out.shape, literals}) : b.broadcast(in[next++], out.shape));
  }
  return all;
}

/// Whether an operation can do without what a sequence keeps for its gradient: that gradient itself, and a scan that
/// hands it on.
bool does_without(const Primitive& op) {
  const bool scans = op.name == "scan" || std::ranges::any_of(scan_compositions(), [&](const NamedComposition& c) {
                       return c.operation == op.name;
                     });
  return scans || (op.second_order_by_reference && !op.differentiable());
}

/// Writes nodes one after the other.
class GraphLowering {
 public:
  GraphLowering(HloBuilder& b, const Graph& g, std::vector<HloValue> given, const std::vector<bool>& read)
      : b_(b), g_(g), values_(std::move(given)), live_(g, read) {
    values_.resize(g.values.size());
  }

  HloValues run() {
    for (const Graph::Constant& c : g_.constants)
      if (live_[c.value] && !values_[c.value].exists()) values_[c.value] = constant(c);
    for (const Graph::Node& n : g_.nodes)
      if (live_.has(n)) lower(n);
    HloValues results;
    for (const ValueId v : g_.outputs) results.push_back(values_[v]);
    for (const Graph::VariableValue& w : g_.writes) results.push_back(values_[w.value]);
    return results;
  }

 private:
  /// Where programs are compared it belongs to what reads it, so that an error can name that.
  HloValue constant(const Graph::Constant& c) {
    const auto reader = std::ranges::find_if(
        g_.nodes, [&](const Graph::Node& n) { return live_.has(n) && std::ranges::find(n.in, c.value) != n.in.end(); });
    if (!b_.style().comparable || reader == g_.nodes.end()) return b_.constant(c.tensor);
    const HloOrigin outer = b_.origin();
    b_.set_origin(outer.of({reader->op->name, reader->scope}));
    const HloValue value = b_.constant(c.tensor);
    b_.set_origin(outer);
    return value;
  }

  void lower(const Graph::Node& n) {
    std::vector<Spec> out;
    std::vector<bool> read;
    std::int64_t elements = 0;
    for (const ValueId v : n.out) {
      out.push_back(g_.values[v]);
      read.push_back(live_[v]);
      elements += out.back().shape.numel();
    }
    const HloOrigin outer = b_.origin();
    b_.set_origin(outer.of({n.op->name, n.scope}));
    HloValues results = elements ? written(n, out, read) : HloValues();
    results.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].shape.numel() == 0) results[i] = b_.constant(0, out[i]);
      if (!results[i].exists()) results[i].spec = out[i];
      if (results[i].spec != out[i])
        refuse(*n.op, "it is written with a result " + results[i].spec.str() + " for " + out[i].str(), "report it");
      values_[n.out[i]] = std::move(results[i]);
    }
    b_.set_origin(outer);
  }

  HloValues written(const Graph::Node& n, const std::vector<Spec>& out, const std::vector<bool>& read) {
    if (const StablehloRefusal* r = find_refusal(*n.op)) refuse(*n.op, r->reason, r->hint);
    const HloLowering lowering = find_hlo_lowering(*n.op);
    if (!lowering) refuse(*n.op, "none is written", "express it in other operations");
    HloValues in;
    for (const ValueId v : n.in) in.push_back(operand(n, v));
    if (n.op->is_pointwise()) in = spread(b_, n, in, out[0]);
    return lowering(b_, {*n.op, in, n.attrs, out, read});
  }

  /// What a sequence keeps for its gradient is not written; only that gradient asks for it.
  HloValue operand(const Graph::Node& n, ValueId v) const {
    if (!values_[v].exists() && !does_without(*n.op))
      refuse(*n.op, "it reads what a recurrent sequence keeps for its gradient", "read the sequence's outputs");
    return values_[v];
  }

  HloBuilder& b_;
  const Graph& g_;
  std::vector<HloValue> values_;
  const LiveValues live_;
};

}  // namespace

HloLowering find_hlo_lowering(const Primitive& op) {
  for (const HloFamily family : {hlo_pointwise(), hlo_error_functions(), hlo_math(), hlo_reductions(), hlo_views(),
                                 hlo_indexing(), hlo_creation(), hlo_scan()})
    for (const NamedHloLowering& l : family)
      if (l.operation == op.name) return l.lower;
  if (op.is_pointwise() && !op.stablehlo.empty()) return elementwise;
  if (find_composition(op)) return composed;
  return op.reference ? composition : nullptr;
}

HloValues lower_graph(HloBuilder& b, const Graph& graph, std::vector<HloValue> given, const std::vector<bool>& read) {
  return GraphLowering(b, graph, std::move(given), read).run();
}

HloValues lower_traced(HloBuilder& b, const std::function<Tensors(const Tensors&)>& f, const HloValues& in,
                       const std::vector<bool>& read) {
  std::vector<Spec> specs;
  for (const HloValue& x : in) specs.push_back(x.spec);
  const Graph graph = trace(f, specs);
  std::vector<HloValue> given(graph.values.size());
  for (std::size_t i = 0; i < in.size(); ++i) given[graph.inputs[i]] = in[i];
  return lower_graph(b, graph, std::move(given), read);
}

}  // namespace detail
}  // namespace ferrite::exchange
