/// The walk over a graph that all exporters share: it writes the nodes that a result depends on, in order, through the
/// exporter's builder.
#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/emit/program_builder.h"

namespace ferrite::exchange::detail {
namespace {

/// Returns whether an operation may lack the residuals of a recurrent sequence: the gradient of the sequence, and a
/// scan that passes them on.
bool does_without(const Primitive& op) {
  const auto scans = scan_compositions();
  return op.name == "scan" || std::ranges::find(scans, op.name, &NamedComposition::operation) != scans.end() ||
         (op.second_order_by_reference && !op.differentiable());
}

class GraphWalk {
 public:
  /// `read` says which outputs are needed; if it is empty, all are.
  GraphWalk(ProgramBuilder& b, const Graph& g, Values given, const std::vector<bool>& read)
      : b_(b), g_(g), values_(std::move(given)), live_(g.values.size()) {
    values_.resize(g.values.size());
    mark_live(read);
  }

  Values run() {
    for (const Graph::Constant& c : g_.constants)
      if (live_[c.value] && !values_[c.value].exists()) values_[c.value] = b_.constant_of(c.tensor, reader_of(c.value));
    for (const Graph::Node& n : g_.nodes)
      if (is_live(n)) b_.inside(n, [&] { write(n); });
    Values results;
    for (const ValueId v : g_.outputs) results.push_back(values_[v]);
    for (const Graph::VariableValue& w : g_.writes) results.push_back(values_[w.value]);
    return results;
  }

 private:
  bool is_live(const Graph::Node& n) const {
    return std::ranges::any_of(n.out, [&](ValueId v) { return live_[v]; });
  }
  void mark_live(const std::vector<bool>& read) {
    for (std::size_t i = 0; i < g_.outputs.size(); ++i)
      if (read.empty() || read[i]) live_[g_.outputs[i]] = true;
    for (const Graph::VariableValue& w : g_.writes) live_[w.value] = true;
    for (auto n = g_.nodes.rbegin(); n != g_.nodes.rend(); ++n)
      if (is_live(*n))
        for (const ValueId v : n->in) live_[v] = true;
  }
  const Graph::Node* reader_of(ValueId v) const {
    const auto reads = [&](const Graph::Node& n) { return is_live(n) && std::ranges::find(n.in, v) != n.in.end(); };
    const auto at = std::ranges::find_if(g_.nodes, reads);
    return at == g_.nodes.end() ? nullptr : &*at;
  }

  [[noreturn]] void refuse(const Primitive& op, std::string_view what, std::string_view hint) const {
    throw ExportError(std::string(b_.format().who) + ": no lowering of " + std::string(op.name) + ": " +
                      std::string(what) + "; " + std::string(hint));
  }

  void write(const Graph::Node& n) {
    std::vector<Spec> out;
    std::vector<bool> read;
    std::int64_t elements = 0;
    for (const ValueId v : n.out) {
      out.push_back(g_.values[v]);
      read.push_back(live_[v]);
      elements += out.back().shape.numel();
    }
    Values results = elements > 0 ? written(n, out, read) : Values();
    results.resize(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i].shape.numel() == 0 && read[i]) results[i] = b_.filled(0, out[i]);
      if (!results[i].exists()) results[i].spec = out[i];
      if (results[i].spec != out[i])
        refuse(*n.op, "it is written with a result " + results[i].spec.str() + " for " + out[i].str(), "report it");
      values_[n.out[i]] = std::move(results[i]);
    }
  }

  Values written(const Graph::Node& n, const std::vector<Spec>& out, const std::vector<bool>& read) {
    if (const ExportRefusal* r = find_refusal(b_.format(), *n.op)) refuse(*n.op, r->reason, r->hint);
    if (!b_.writes(*n.op)) refuse(*n.op, "none is written", "express it in other operations");
    Values in;
    for (const ValueId v : n.in) in.push_back(operand(n, v));
    Values results = b_.write({*n.op, in, n.attrs, out, read});
    if (results.empty()) refuse(*n.op, "not of these types or constants", "express it in other operations");
    return results;
  }

  /// Returns an operand of a node. The residuals of a recurrent sequence are not written; only its gradient reads them.
  const Value& operand(const Graph::Node& n, ValueId v) const {
    if (!values_[v].exists() && !does_without(*n.op))
      refuse(*n.op, "it reads what a recurrent sequence keeps for its gradient", "read the sequence's outputs");
    return values_[v];
  }

  ProgramBuilder& b_;
  const Graph& g_;
  Values values_;
  std::vector<bool> live_;  ///< whether a result depends on each value
};

}  // namespace

const ExportRefusal* find_refusal(const Format& format, const Primitive& op) {
  const auto at = std::ranges::find(format.refusals, op.name, &ExportRefusal::operation);
  return at == format.refusals.end() ? nullptr : &*at;
}

Values lower_graph(ProgramBuilder& b, const Graph& graph, Values given, const std::vector<bool>& read) {
  return GraphWalk(b, graph, std::move(given), read).run();
}

Values lower_traced(ProgramBuilder& b, const std::function<Tensors(const Tensors&)>& f, const Values& in,
                    const std::vector<bool>& read) {
  std::vector<Spec> specs;
  for (const Value& x : in) specs.push_back(x.spec);
  const Graph graph = trace(f, specs);
  Values given(graph.values.size());
  for (std::size_t i = 0; i < in.size(); ++i) given[graph.inputs[i]] = in[i];
  return lower_graph(b, graph, std::move(given), read);
}

bool has_composition(const Primitive& op) { return op.reference || find_composition(op) != nullptr; }

Values lower_composition(ProgramBuilder& b, const Application& a) {
  if (!has_composition(a.op)) return {};
  const Composition compose = find_composition(a.op);
  const auto apply = [&](const Tensors& in) {
    return compose ? compose({a.attrs, a.out}, in) : a.op.reference(OperandList(in), a.attrs);
  };
  return lower_traced(b, apply, a.in, a.read);
}

Values with_literals(const Application& a, const std::function<Value(Scalar, Dtype)>& constant,
                     const std::function<Value(const Value&)>& operand) {
  const Dtype literals = a.out[0].dtype == Dtype::boolean ? a.in[0].dtype() : a.out[0].dtype;
  Values all;
  std::size_t next = 0;
  for (int k = 0; k < a.op.arity; ++k) {
    const Scalar* literal = a.literal(static_cast<std::size_t>(k));
    all.push_back(literal ? constant(*literal, literals) : operand(a.in[next++]));
  }
  return all;
}

}  // namespace ferrite::exchange::detail
