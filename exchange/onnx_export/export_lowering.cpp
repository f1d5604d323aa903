/// Finds how an operation is written: by function, by name, by composition, or a refusal.
#include "ferrite/exchange/onnx_export/export_lowering.h"

#include <functional>

#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/onnx_export.h"

namespace ferrite::onnx {
namespace {

constexpr std::string_view kDraws =
    "its numbers are those of Philox4x32-10 with a counter for each element; runtimes of ONNX draw others";
constexpr std::string_view kDrawsHint =
    "draw outside of the traced function and give the numbers as an input; dropout is the identity in evaluation";
constexpr std::string_view kElimination = "ONNX has no factorisations of matrices";
constexpr std::string_view kEliminationHint = "compute it outside of the traced function and give it as an input";
constexpr std::string_view kSpecial = "ONNX has no such function";
constexpr std::string_view kSpecialHint = "export the functions before and behind it";
constexpr std::string_view kBits = "opset 17 has no bits of integers";
constexpr std::string_view kBitsHint = "multiply, or divide with floor_divide, by powers of 2; -1 - x is bitwise_not";
constexpr std::string_view kRepeats = "where an index is repeated, ONNX leaves the order of updates open";
constexpr std::string_view kRepeatsHint = "use scatter_add, or where with a mask";
constexpr std::string_view kExtremes = "opset 17 has no such reduction of ScatterElements";
constexpr std::string_view kPlaces = "the order in which it finds elements is not that of a node of fixed extent";
constexpr std::string_view kPlacesHint = "compute it outside of the exported function and give the indices as an input";

constexpr exchange::ExportRefusal kRefusals[] = {
    {"uniform", kDraws, kDrawsHint},
    {"normal", kDraws, kDrawsHint},
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
    {"solve", kElimination, kEliminationHint},
    {"solve_triangular", kElimination, kEliminationHint},
    {"slogdet", kElimination, kEliminationHint},
    {"cholesky", kElimination, kEliminationHint},
    {"qr", kElimination, kEliminationHint},
    {"eigh", kElimination, kEliminationHint},
    {"digamma", kSpecial, kSpecialHint},
    {"erfinv", kSpecial, kSpecialHint},
    {"lgamma", kSpecial, kSpecialHint},
    {"polygamma", kSpecial, kSpecialHint},
    {"trigamma", kSpecial, kSpecialHint},
    {"bitwise_not", kBits, kBitsHint},
    {"bitwise_left_shift", kBits, kBitsHint},
    {"bitwise_right_shift", kBits, kBitsHint},
    {"scatter_prod_others", kRepeats, kRepeatsHint},
    {"scatter_extremum", kExtremes, kRepeatsHint},
    {"nonzero", kPlaces, kPlacesHint},
};

}  // namespace

std::span<const exchange::ExportRefusal> onnx_refusals() { return kRefusals; }
bool has_onnx(const Primitive& op) {
  return !exchange::detail::find_refusal(kRefusals, op) && detail::has_lowering(op);
}

namespace detail {
namespace {

ExportLowering find_lowering(const Primitive& op) {
  for (const ExportFamily family :
       {export_pointwise(), export_math(), export_reductions(), export_views(), export_indexing(), export_creation(),
        export_windows(), export_running(), export_fourier(), export_recurrent(), export_scan()})
    for (const NamedExportLowering& l : family)
      if (l.operation == op.name) return l.lower;
  return nullptr;
}

/// Operations on elements of which ONNX has the same, with the same operands.
bool has_same_name(const Primitive& op) { return op.is_pointwise() && !op.onnx.empty() && !op.reference; }

/// An operation in others, by its composition for formats like this one, or by that of its record.
ExportValues composition(GraphBuilder& b, const ExportCall& c) {
  const exchange::detail::Composition compose = exchange::detail::find_composition(c.op);
  const auto apply = [&](const Tensors& in) {
    return compose ? compose({c.attrs, c.out}, in) : c.op.reference(OperandList(in), c.attrs);
  };
  return lower_traced(b, apply, c.in, c.read);
}

bool has_composition(const Primitive& op) { return op.reference || exchange::detail::find_composition(op) != nullptr; }

/// ONNX, as GraphWalk sees it.
class Language {
 public:
  using Value = ExportValue;
  static constexpr std::string_view who = "to_onnx";

  explicit Language(GraphBuilder& b) : b_(b) {}

  static std::span<const exchange::ExportRefusal> refusals() { return kRefusals; }
  static bool writes(const Primitive& op) { return has_lowering(op); }
  /// That gradient itself, and a scan that hands it on.
  static bool does_without(const Primitive& op) {
    return (op.second_order_by_reference && !op.differentiable()) || op.name.starts_with("scan");
  }
  ExportValue constant(const Tensor& tensor, const Graph::Node*) { return b_.constant(tensor); }
  ExportValue zeros(const Spec& spec) { return b_.filled(0, spec); }

  ExportValues write(const ExportCall& c) {
    const ExportLowering lowering = find_lowering(c.op);
    if (lowering || has_same_name(c.op)) {
      const auto literal = [&](Scalar value, Dtype dtype) { return b_.scalar(value, dtype); };
      const ExportValues all = c.op.is_pointwise() ? with_literals(c, literal, std::identity()) : c.in;
      if (!lowering) return {b_.node(std::string(c.op.onnx), all, c.out[0])};
      ExportValues results = lowering(b_, {c.op, all, c.attrs, c.out, c.read});
      if (!results.empty()) return results;
    }
    return has_composition(c.op) ? composition(b_, c) : ExportValues();
  }

  template <class F>
  void inside(const Graph::Node& n, const F& f) {
    const Scope outer = b_.layer();
    b_.set_layer(n.scope.or_else(outer));
    f();
    b_.set_layer(outer);
  }

 private:
  GraphBuilder& b_;
};

}  // namespace

bool has_lowering(const Primitive& op) {
  return find_lowering(op) != nullptr || has_same_name(op) || has_composition(op);
}

ExportValues lower_graph(GraphBuilder& b, const Graph& graph, ExportValues given, const std::vector<bool>& read) {
  Language language(b);
  return exchange::detail::GraphWalk(language, graph, std::move(given), read).run();
}

ExportValues lower_traced(GraphBuilder& b, const std::function<Tensors(const Tensors&)>& f, const ExportValues& in,
                          const std::vector<bool>& read) {
  return exchange::detail::trace_of(
      f, in, [&](const Graph& graph, ExportValues given) { return lower_graph(b, graph, std::move(given), read); });
}

}  // namespace detail
}  // namespace ferrite::onnx
