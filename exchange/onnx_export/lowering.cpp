/// Finds how an operation is written: by function, by name, by composition, or a refusal.
#include "ferrite/exchange/onnx_export/lowering.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/detail/live_values.h"
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

constexpr ExportRefusal kRefusals[] = {
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

const ExportRefusal* find_refusal(const Primitive& op) {
  for (const ExportRefusal& r : kRefusals)
    if (r.operation == op.name) return &r;
  return nullptr;
}

}  // namespace

std::span<const ExportRefusal> onnx_refusals() { return kRefusals; }
bool has_onnx(const Primitive& op) { return !find_refusal(op) && detail::has_lowering(op); }

namespace detail {
namespace {

[[noreturn]] void refuse(const Primitive& op, std::string_view what, std::string_view hint) {
  throw ExportError("to_onnx: no lowering of " + std::string(op.name) + ": " + std::string(what) + "; " +
                    std::string(hint));
}

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

/// The operands of a pointwise operation, literals among them.
ExportValues with_literals(GraphBuilder& b, const Graph::Node& n, const ExportValues& in, const Spec& out) {
  const Dtype literals = out.dtype == Dtype::boolean ? in[0].dtype() : out.dtype;
  ExportValues all;
  std::size_t next = 0;
  for (int k = 0; k < n.op->arity; ++k) {
    const Scalar* literal = ferrite::detail::literal_of(n.attrs, static_cast<std::size_t>(k));
    all.push_back(literal ? b.scalar(*literal, literals) : in[next++]);
  }
  return all;
}

/// Whether an operation can do without what a sequence keeps for its gradient: that gradient itself, and a scan that
/// hands it on.
bool does_without(const Primitive& op) {
  return (op.second_order_by_reference && !op.differentiable()) || op.name.starts_with("scan");
}

/// Writes nodes one after the other.
class GraphLowering {
 public:
  GraphLowering(GraphBuilder& b, const Graph& g, ExportValues given, const std::vector<bool>& read)
      : b_(b), g_(g), values_(std::move(given)), live_(g, read) {
    values_.resize(g.values.size());
  }

  ExportValues run() {
    for (const Graph::Constant& c : g_.constants)
      if (live_[c.value] && values_[c.value].name.empty()) values_[c.value] = b_.constant(c.tensor);
    for (const Graph::Node& n : g_.nodes)
      if (live_.has(n)) lower(n);
    ExportValues results;
    for (const ValueId v : g_.outputs) results.push_back(values_[v]);
    for (const Graph::VariableValue& w : g_.writes) results.push_back(values_[w.value]);
    return results;
  }

 private:
  void lower(const Graph::Node& n) {
    std::vector<Spec> out;
    std::vector<bool> read;
    std::int64_t elements = 0;
    for (const ValueId v : n.out) {
      out.push_back(g_.values[v]);
      read.push_back(live_[v]);
      elements += out.back().shape.numel();
    }
    const Scope outer = b_.layer();
    b_.set_layer(n.scope.or_else(outer));
    ExportValues results = elements ? written(n, out, read) : ExportValues();
    results.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].shape.numel() == 0 && live_[n.out[i]]) results[i] = b_.filled(0, out[i]);
      if (results[i].name.empty()) results[i].spec = out[i];
      if (results[i].spec != out[i])
        refuse(*n.op, "it is written with a result " + results[i].spec.str() + " for " + out[i].str(), "report it");
      values_[n.out[i]] = std::move(results[i]);
    }
    b_.set_layer(outer);
  }

  ExportValues written(const Graph::Node& n, const std::vector<Spec>& out, const std::vector<bool>& read) {
    if (const ExportRefusal* r = find_refusal(*n.op)) refuse(*n.op, r->reason, r->hint);
    if (!has_lowering(*n.op)) refuse(*n.op, "none is written", "express it in other operations");
    ExportValues in;
    for (const ValueId v : n.in) in.push_back(operand(n, v));
    const ExportLowering lowering = find_lowering(*n.op);
    if (lowering || has_same_name(*n.op)) {
      const ExportValues all = n.op->is_pointwise() ? with_literals(b_, n, in, out[0]) : in;
      if (!lowering) return {b_.node(std::string(n.op->onnx), all, out[0])};
      ExportValues results = lowering(b_, {*n.op, all, n.attrs, out, read});
      if (!results.empty()) return results;
    }
    if (!has_composition(*n.op)) refuse(*n.op, "not of these types or constants", "express it in other operations");
    return composition(b_, {*n.op, in, n.attrs, out, read});
  }

  /// What a sequence keeps for its gradient is not written; only that gradient asks for it.
  ExportValue operand(const Graph::Node& n, ValueId v) const {
    if (values_[v].name.empty() && !does_without(*n.op))
      refuse(*n.op, "it reads what a recurrent sequence keeps for its gradient", "read the sequence's outputs");
    return values_[v];
  }

  GraphBuilder& b_;
  const Graph& g_;
  ExportValues values_;
  const exchange::detail::LiveValues live_;
};

}  // namespace

bool has_lowering(const Primitive& op) {
  return find_lowering(op) != nullptr || has_same_name(op) || has_composition(op);
}

ExportValues lower_graph(GraphBuilder& b, const Graph& graph, ExportValues given, const std::vector<bool>& read) {
  return GraphLowering(b, graph, std::move(given), read).run();
}

ExportValues lower_traced(GraphBuilder& b, const std::function<Tensors(const Tensors&)>& f, const ExportValues& in,
                          const std::vector<bool>& read) {
  std::vector<Spec> specs;
  for (const ExportValue& x : in) specs.push_back(x.spec);
  const Graph graph = trace(f, specs);
  ExportValues given(graph.values.size());
  for (std::size_t i = 0; i < in.size(); ++i) given[graph.inputs[i]] = in[i];
  return lower_graph(b, graph, std::move(given), read);
}

}  // namespace detail
}  // namespace ferrite::onnx
