#pragma once
/// The walk over a graph that every exporter makes: what something depends on, node after node, in the exporter's
/// language.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/export_error.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::exchange::detail {

/// One application, with the values that its operands are in a language.
template <class Value>
struct Application {
  const Primitive& op;
  const std::vector<Value>& in;
  const Attrs& attrs;
  const std::vector<Spec>& out;
  const std::vector<bool>& read;  ///< by result: whether anything depends on it

  /// The constants as the struct of the operation.
  template <class S>
  S as() const {
    return attrs.as<S>(op.name);
  }
  int axis() const { return as<ferrite::detail::AxisAttrs>().axis; }
  /// A constant of a struct that only the operation's own file sees; `otherwise` where it is not set.
  template <class T>
  T named(std::string_view name, T otherwise) const {
    attrs.each([&](std::string_view own, const AttrValue& value) {
      if (const T* v = std::get_if<T>(&value); v && own == name) otherwise = *v;
    });
    return otherwise;
  }
  /// A literal among the operands of a pointwise operation, or null.
  const Scalar* literal(std::size_t k) const { return ferrite::detail::literal_of(attrs, k); }
};

/// Writes an application and gives its results. A result that nothing depends on may stay without a value.
template <class Builder, class Value>
using Lowering = std::vector<Value> (*)(Builder&, const Application<Value>&);

template <class Builder, class Value>
struct NamedLowering {
  std::string_view operation;
  Lowering<Builder, Value> lower;
};

/// The refusal of an operation, or null.
inline const ExportRefusal* find_refusal(std::span<const ExportRefusal> all, const Primitive& op) {
  const auto at = std::ranges::find(all, op.name, &ExportRefusal::operation);
  return at == all.end() ? nullptr : &*at;
}

/// The operands of a pointwise operation, in order: `constant(literal, dtype)` of literals, `operand(x)` of the others.
template <class Value, class Constant, class Operand>
std::vector<Value> with_literals(const Application<Value>& a, const Constant& constant, const Operand& operand) {
  const Dtype literals = a.out[0].dtype == Dtype::boolean ? a.in[0].dtype() : a.out[0].dtype;
  std::vector<Value> all;
  std::size_t next = 0;
  for (int k = 0; k < a.op.arity; ++k) {
    const Scalar* literal = a.literal(static_cast<std::size_t>(k));
    all.push_back(literal ? constant(*literal, literals) : operand(a.in[next++]));
  }
  return all;
}

/// Writes the part of a graph that its outputs and its writes to variables depend on.
///
/// A Language has `Value`, a class with `exists()` and `spec`, and
///
///   static constexpr std::string_view who;                     // "to_onnx"
///   std::span<const ExportRefusal> refusals() const;
///   bool writes(const Primitive&) const;                       // whether an operation is written at all
///   bool does_without(const Primitive&) const;                 // whether it may lack what a sequence keeps for its
///                                                              // gradient
///   Value constant(const Tensor&, const Graph::Node* reader);
///   Value zeros(const Spec&);
///   std::vector<Value> write(const Application<Value>&);       // or none, where it cannot
///   template <class F> auto inside(const Graph::Node&, F);     // f(), as a part of the node's layer
template <class Language>
class GraphWalk {
 public:
  using Value = typename Language::Value;
  using Values = std::vector<Value>;

  /// `given` are the values of inputs, variables read and, where they have some, constants, by number. `read` says
  /// which outputs are asked for; empty: all.
  GraphWalk(Language& language, const Graph& g, Values given, const std::vector<bool>& read)
      : language_(language), g_(g), values_(std::move(given)), live_(g.values.size()) {
    values_.resize(g.values.size());
    mark_live(read);
  }

  /// Gives the outputs, then what is written to variables. Throws ExportError.
  Values run() {
    for (const Graph::Constant& c : g_.constants)
      if (live_[c.value] && !values_[c.value].exists())
        values_[c.value] = language_.constant(c.tensor, reader_of(c.value));
    for (const Graph::Node& n : g_.nodes)
      if (is_live(n)) language_.inside(n, [&] { write(n); });
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

  [[noreturn]] static void refuse(const Primitive& op, std::string_view what, std::string_view hint) {
    throw ExportError(std::string(Language::who) + ": no lowering of " + std::string(op.name) + ": " +
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
      if (out[i].shape.numel() == 0 && read[i]) results[i] = language_.zeros(out[i]);
      if (!results[i].exists()) results[i].spec = out[i];
      if (results[i].spec != out[i])
        refuse(*n.op, "it is written with a result " + results[i].spec.str() + " for " + out[i].str(), "report it");
      values_[n.out[i]] = std::move(results[i]);
    }
  }

  Values written(const Graph::Node& n, const std::vector<Spec>& out, const std::vector<bool>& read) {
    if (const ExportRefusal* r = find_refusal(language_.refusals(), *n.op)) refuse(*n.op, r->reason, r->hint);
    if (!language_.writes(*n.op)) refuse(*n.op, "none is written", "express it in other operations");
    Values in;
    for (const ValueId v : n.in) in.push_back(operand(n, v));
    Values results = language_.write({*n.op, in, n.attrs, out, read});
    if (results.empty()) refuse(*n.op, "not of these types or constants", "express it in other operations");
    return results;
  }

  /// What a sequence keeps for its gradient is not written; only that gradient asks for it.
  const Value& operand(const Graph::Node& n, ValueId v) const {
    if (!values_[v].exists() && !language_.does_without(*n.op))
      refuse(*n.op, "it reads what a recurrent sequence keeps for its gradient", "read the sequence's outputs");
    return values_[v];
  }

  Language& language_;
  const Graph& g_;
  Values values_;
  std::vector<bool> live_;  ///< by value: whether a result depends on it
};

/// Traces a function of these values and hands the program to `walk(graph, given)`.
template <class Value, class Walk>
auto trace_of(const std::function<Tensors(const Tensors&)>& f, const std::vector<Value>& in, const Walk& walk) {
  std::vector<Spec> specs;
  for (const Value& x : in) specs.push_back(x.spec);
  const Graph graph = trace(f, specs);
  std::vector<Value> given(graph.values.size());
  for (std::size_t i = 0; i < in.size(); ++i) given[graph.inputs[i]] = in[i];
  return walk(graph, std::move(given));
}

}  // namespace ferrite::exchange::detail
