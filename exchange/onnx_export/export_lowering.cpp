/// Finds the lowering of an operation: by function, by name, by composition, or a refusal.
#include "ferrite/exchange/onnx_export/export_lowering.h"

#include "ferrite/exchange/emit/refusals.h"
#include "ferrite/exchange/onnx_export.h"

namespace ferrite::onnx {
namespace {

constexpr std::string_view kGenerators =
    "its numbers are those of Philox4x32-10 with a counter for each element; runtimes of ONNX draw others";
constexpr std::string_view kElimination = "ONNX has no factorisations of matrices";
constexpr std::string_view kSpecial = "ONNX has no such function";
constexpr std::string_view kBits = "opset 17 has no bits of integers";
constexpr std::string_view kBitsHint = "multiply, or divide with floor_divide, by powers of 2; -1 - x is bitwise_not";
constexpr std::string_view kRepeats = "where an index is repeated, ONNX leaves the order of updates open";
constexpr std::string_view kRepeatsHint = "use scatter_add, or where with a mask";
constexpr std::string_view kExtremes = "opset 17 has no such reduction of ScatterElements";
constexpr std::string_view kPlaces = "the order in which it finds elements is not that of a node of fixed extent";
constexpr std::string_view kPlacesHint = "compute it outside of the exported function and give the indices as an input";

constexpr exchange::ExportRefusal kOwn[] = {
    {"filter_logits", "it sorts rows and keeps some of them", "filter outside of the traced function"},
    {"bitwise_not", kBits, kBitsHint},
    {"bitwise_left_shift", kBits, kBitsHint},
    {"bitwise_right_shift", kBits, kBitsHint},
    {"scatter_prod_others", kRepeats, kRepeatsHint},
    {"scatter_extremum", kExtremes, kRepeatsHint},
    {"nonzero", kPlaces, kPlacesHint},
};

}  // namespace

std::span<const exchange::ExportRefusal> onnx_refusals() {
  using namespace exchange::detail;
  static const std::vector<exchange::ExportRefusal> all =
      refusals(kOwn, {{kDraws, kGenerators, kDrawsHint},
                      {kEliminations, kElimination, kEliminationsHint},
                      {kSpecialFunctions, kSpecial, kSpecialFunctionsHint}});
  return all;
}
bool has_onnx(const Primitive& op) {
  const exchange::detail::OnnxBuilder b;
  return !exchange::detail::find_refusal(b.format(), op) && b.writes(op);
}

}  // namespace ferrite::onnx

namespace ferrite::exchange::detail {
namespace {

/// Returns whether ONNX has the same elementwise operation, with the same operands.
bool has_same_name(const Primitive& op) { return op.is_pointwise() && !op.onnx.empty() && !op.reference; }

Lowering<OnnxBuilder> find_own(const Primitive& op) {
  for (const ExportFamily family : {export_lowerings(), export_windows(), export_recurrent(), export_scan()})
    if (const auto own = find_lowering(family, op)) return own;
  return nullptr;
}

}  // namespace

const Format& OnnxBuilder::format() const {
  static const Format format{.who = "to_onnx", .dialect = "", .refusals = onnx::onnx_refusals()};
  return format;
}

bool OnnxBuilder::writes(const Primitive& op) const {
  return find_own(op) || find_lowering(common_lowerings(), op) || has_same_name(op) || has_composition(op);
}

Values OnnxBuilder::write(const Application& a) {
  const auto own = find_own(a.op);
  const auto common = find_lowering(common_lowerings(), a.op);
  if (!own && !common && !has_same_name(a.op)) return lower_composition(*this, a);
  const auto literal = [&](Scalar value, Dtype dtype) { return scalar(value, dtype); };
  const Values all = a.op.is_pointwise() ? with_literals(a, literal, std::identity()) : a.in;
  if (!own && !common) return {node(a.op.onnx, all, a.out[0])};
  const Application whole{a.op, all, a.attrs, a.out, a.read};
  Values results = own ? own(*this, whole) : Values();
  if (results.empty() && common) results = common(*this, whole);
  return results.empty() ? lower_composition(*this, a) : results;
}

}  // namespace ferrite::exchange::detail
