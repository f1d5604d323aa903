/// Finds the lowering of an operation: by name, by function, by reference, or a refusal.
#include "ferrite/exchange/stablehlo/hlo_lowering.h"

#include <algorithm>

#include "ferrite/exchange/compositions/compositions.h"
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

constexpr ExportRefusal kRefusals[] = {
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

}  // namespace

std::span<const ExportRefusal> stablehlo_refusals() { return kRefusals; }
bool has_stablehlo(const Primitive& op) {
  return !detail::find_refusal(kRefusals, op) && detail::find_hlo_lowering(op) != nullptr;
}

namespace detail {
namespace {

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

/// StableHLO, as GraphWalk sees it.
class Language {
 public:
  using Value = HloValue;
  static constexpr std::string_view who = "to_stablehlo";

  explicit Language(HloBuilder& b) : b_(b) {}

  static std::span<const ExportRefusal> refusals() { return kRefusals; }
  static bool writes(const Primitive& op) { return find_hlo_lowering(op) != nullptr; }
  /// That gradient itself, and a scan that hands it on.
  static bool does_without(const Primitive& op) {
    const bool scans =
        op.name == "scan" ||
        std::ranges::find(scan_compositions(), op.name, &NamedComposition::operation) != scan_compositions().end();
    return scans || (op.second_order_by_reference && !op.differentiable());
  }
  /// Where programs are compared it belongs to what reads it, so that an error can name that.
  HloValue constant(const Tensor& tensor, const Graph::Node* reader) {
    if (!b_.style().comparable || !reader) return b_.constant(tensor);
    HloValue value;
    inside(*reader, [&] { value = b_.constant(tensor); });
    return value;
  }
  HloValue zeros(const Spec& spec) { return b_.constant(0, spec); }

  HloValues write(const HloCall& c) {
    const HloLowering lowering = find_hlo_lowering(c.op);
    if (!c.op.is_pointwise()) return lowering(b_, c);
    const Shape& shape = c.out[0].shape;
    const HloValues all = with_literals(
        c,
        [&](Scalar value, Dtype dtype) {
          return b_.constant(value, {shape, dtype});
        },
        [&](const HloValue& x) { return b_.broadcast(x, shape); });
    return lowering(b_, {c.op, all, c.attrs, c.out, c.read});
  }

  template <class F>
  void inside(const Graph::Node& n, const F& f) {
    const HloOrigin outer = b_.origin();
    b_.set_origin(outer.of({n.op->name, n.scope}));
    f();
    b_.set_origin(outer);
  }

 private:
  HloBuilder& b_;
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
  Language language(b);
  return GraphWalk(language, graph, std::move(given), read).run();
}

HloValues lower_traced(HloBuilder& b, const std::function<Tensors(const Tensors&)>& f, const HloValues& in,
                       const std::vector<bool>& read) {
  return trace_of(f, in,
                  [&](const Graph& graph, HloValues given) { return lower_graph(b, graph, std::move(given), read); });
}

}  // namespace detail
}  // namespace ferrite::exchange
