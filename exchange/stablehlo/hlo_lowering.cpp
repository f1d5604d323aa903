/// Finds the lowering of an operation: by function, by name, by composition, or a refusal.
#include "ferrite/exchange/stablehlo/hlo_lowering.h"

#include "ferrite/exchange/emit/refusals.h"
#include "ferrite/exchange/stablehlo.h"

namespace ferrite::exchange {
namespace {

constexpr std::string_view kGenerators =
    "its numbers are those of Philox4x32-10 with a counter for each element; StableHLO's generators give others";
constexpr std::string_view kFourier =
    "StableHLO's fft takes and gives complex numbers, a type that programs here do not have";
constexpr std::string_view kFourierHint = "export the functions before and after it";

constexpr std::string_view kSpecial = "it is a function of CHLO, the dialect above StableHLO";

constexpr std::string_view kElimination = "StableHLO has no pivots, reflections or rotations but in custom calls";

constexpr std::string_view kRuns = "running functions round in f64, which loops and windows of StableHLO do not";
constexpr std::string_view kRunsHint = "write the steps with `scan`, which is exported as a loop";
constexpr std::string_view kOrders =
    "its order of equal elements, of 0 and -0 and of NaN is not that of StableHLO's sort";
constexpr std::string_view kOrdersHint = "compute it outside of the exported function and give the indices as an input";
constexpr std::string_view kRepeats =
    "where an index is repeated, StableHLO leaves the order of updates to the implementation";
constexpr std::string_view kRepeatsHint = "use scatter_add, or where with a mask";

constexpr ExportRefusal kOwn[] = {
    {"rfft", kFourier, kFourierHint},
    {"irfft", kFourier, kFourierHint},
    {"fft", kFourier, kFourierHint},
    {"det", kElimination, detail::kEliminationsHint},
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
    {"scatter_prod_others", kRepeats, kRepeatsHint}};

}  // namespace

std::span<const ExportRefusal> stablehlo_refusals() {
  using namespace detail;
  static const std::vector<ExportRefusal> all = refusals(kOwn, {{kDraws, kGenerators, kDrawsHint},
                                                                {kEliminations, kElimination, kEliminationsHint},
                                                                {kSpecialFunctions, kSpecial, kSpecialFunctionsHint}});
  return all;
}
bool has_stablehlo(const Primitive& op) {
  return !detail::find_refusal(detail::hlo_format(), op) && detail::HloBuilder(detail::HloStyle{}).writes(op);
}

namespace detail {
namespace {

bool has_same_name(const Primitive& op) { return op.is_pointwise() && !op.stablehlo.empty(); }

Lowering<HloBuilder> find_own(const Primitive& op) {
  const auto own = find_lowering(hlo_lowerings(), op);
  return own ? own : find_lowering(hlo_scan(), op);
}

}  // namespace

const Format& hlo_format() {
  static const Format format{.who = "to_stablehlo", .dialect = "stablehlo.", .refusals = stablehlo_refusals()};
  return format;
}

const Format& HloBuilder::format() const { return hlo_format(); }

bool HloBuilder::writes(const Primitive& op) const {
  return find_own(op) || find_lowering(common_lowerings(), op) || has_same_name(op) || has_composition(op);
}

Values HloBuilder::write(const Application& a) {
  const Shape& shape = a.out[0].shape;
  const auto literal = [&](Scalar value, Dtype dtype) { return filled(value, {shape, dtype}); };
  const auto operand = [&](const Value& x) { return expand(x, shape); };
  const Values all = a.op.is_pointwise() ? with_literals(a, literal, operand) : a.in;
  const Application whole{a.op, all, a.attrs, a.out, a.read};
  const auto own = find_own(a.op);
  Values results = own ? own(*this, whole) : Values();
  if (!results.empty()) return results;
  if (const auto common = find_lowering(common_lowerings(), a.op)) return common(*this, whole);
  return has_same_name(a.op) ? Values{elementwise(a.op.stablehlo, all)} : lower_composition(*this, whole);
}

Value HloBuilder::constant_of(const Tensor& tensor, const Graph::Node* reader) {
  return style_.comparable ? ProgramBuilder::constant_of(tensor, reader) : constant(tensor);
}

}  // namespace detail
}  // namespace ferrite::exchange
