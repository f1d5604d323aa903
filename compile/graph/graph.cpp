/// Programs: how they are put together, checked and applied.
#include "ferrite/compile/graph/rewrite.h"

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite {

ValueId Graph::add_value(const Spec& spec) {
  values.push_back(spec);
  return static_cast<ValueId>(values.size() - 1);
}

ValueId Graph::add_constant(const Tensor& tensor) {
  const ValueId v = add_value(tensor.spec());
  constants.push_back({v, tensor.unmarked()});
  return v;
}

ValueId Graph::add_node(const Primitive& op, const Attrs& attrs, std::initializer_list<ValueId> in, const Spec& out,
                        Scope scope) {
  const ValueId v = add_value(out);
  Node& n = nodes.emplace_back();
  n.op = &op;
  n.attrs = attrs;
  n.in.append(in.begin(), in.end());
  n.out.push_back(v);
  n.scope = scope;
  return v;
}

namespace {

[[noreturn]] void invalid(const std::string& what) { throw TraceError("graph: " + what); }

std::string name(ValueId v) { return "%" + std::to_string(v); }

/// Walks a graph once and checks that every value is defined once, before its use, and of the right type.
class Validation {
 public:
  explicit Validation(const Graph& g) : g_(g), defined_(g.values.size()) {}

  void run() {
    for (const ValueId v : g_.inputs) define(v);
    for (const Graph::VariableValue& r : g_.reads) {
      define(r.value);
      check_variable(r);
    }
    for (const Graph::Constant& c : g_.constants) {
      define(c.value);
      if (c.tensor.is_abstract() || c.tensor.spec() != g_.values[c.value])
        invalid("constant " + name(c.value) + " is not a " + g_.values[c.value].str());
    }
    for (const Graph::Node& n : g_.nodes) check(n);
    for (const ValueId v : g_.outputs) use(v);
    for (const Graph::VariableValue& w : g_.writes) {
      use(w.value);
      check_variable(w);
    }
  }

 private:
  void define(ValueId v) {
    if (v >= defined_.size()) invalid("value " + name(v) + " has no type");
    if (defined_[v]) invalid("value " + name(v) + " is defined twice");
    defined_[v] = true;
  }
  void use(ValueId v) const {
    if (v >= defined_.size() || !defined_[v]) invalid("value " + name(v) + " is used before it is defined");
  }
  void check_variable(const Graph::VariableValue& c) const {
    if (c.variable >= g_.variables.size()) invalid("variable @" + std::to_string(c.variable) + " is not listed");
    const Variable& variable = g_.variables[c.variable];
    const Spec spec{variable.shape(), variable.dtype()};
    if (spec != g_.values[c.value])
      invalid("variable '" + variable.name() + "' is " + spec.str() + ", its value " + name(c.value) + " " +
              g_.values[c.value].str());
  }
  void check(const Graph::Node& n) {
    if (!n.op) invalid("a node has no operation");
    if (!n.op->infer)
      invalid("'" + std::string(n.op->name) + "' is a step of a plan, which no program has; trace the function again");
    if (n.op->is_pointwise()) check_operands(n);
    Tensors stand_ins;
    for (const ValueId v : n.in) {
      use(v);
      stand_ins.push_back(Tensor::abstract(g_.values[v]));
    }
    const Specs specs = n.op->types(OperandList(stand_ins), n.attrs);
    if (specs.size() != n.out.size())
      invalid(std::string(n.op->name) + " gives " + std::to_string(specs.size()) + " results, the node has " +
              std::to_string(n.out.size()));
    for (std::size_t i = 0; i < specs.size(); ++i) {
      define(n.out[i]);
      if (specs[i] != g_.values[n.out[i]])
        invalid(std::string(n.op->name) + " gives " + specs[i].str() + ", " + name(n.out[i]) + " is " +
                g_.values[n.out[i]].str());
    }
  }

  /// Every operand of a pointwise operation is a tensor or a literal, one at least a tensor.
  static void check_operands(const Graph::Node& n) {
    std::size_t literals = 0;
    for (std::size_t i = 0; i < detail::Literals::kMost; ++i) literals += detail::literal_of(n.attrs, i) != nullptr;
    if (n.in.empty() || n.in.size() + literals != static_cast<std::size_t>(n.op->arity))
      invalid(std::string(n.op->name) + " takes " + std::to_string(n.op->arity) + " operands, got " +
              std::to_string(n.in.size()) + " tensors and " + std::to_string(literals) + " literals");
  }

  const Graph& g_;
  std::vector<char> defined_;
};

}  // namespace

std::vector<ValueId> detail::splice(Graph& g, const Graph& part, std::span<const ValueId> inputs, Scope scope) {
  std::vector<ValueId> here(part.values.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) here[part.inputs[i]] = inputs[i];
  for (const Graph::Constant& c : part.constants) here[c.value] = g.add_constant(c.tensor);
  for (Graph::Node n : part.nodes) {
    n.scope = n.scope.or_else(scope);
    for (ValueId& v : n.in) v = here[v];
    for (ValueId& v : n.out) v = here[v] = g.add_value(part.values[v]);
    g.nodes.push_back(std::move(n));
  }
  std::vector<ValueId> outputs;
  for (const ValueId v : part.outputs) outputs.push_back(here[v]);
  return outputs;
}

void Graph::validate() const { Validation(*this).run(); }

Tensors replay(const Graph& graph, std::span<const Tensor> inputs) {
  if (inputs.size() != graph.inputs.size() + graph.reads.size())
    throw ValueError("replay: the graph takes " + std::to_string(graph.inputs.size() + graph.reads.size()) +
                     " tensors, got " + std::to_string(inputs.size()));
  std::vector<Tensor> values(graph.values.size());
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
  for (std::size_t i = 0; i < graph.reads.size(); ++i) values[graph.reads[i].value] = inputs[graph.inputs.size() + i];
  for (const Graph::Constant& c : graph.constants) values[c.value] = c.tensor;
  detail::Scoped scope(detail::frame().scope);
  for (const Graph::Node& n : graph.nodes) {
    InlineVector<const Tensor*, 8> in;
    for (const ValueId v : n.in) in.push_back(&values[v]);
    const Inputs operands{in.data(), in.size()};
    scope.enter(n.scope.or_else(scope.before()));
    Tensors out = detail::in_layer(n.scope, [&] {
      return n.op->is_composite() ? detail::apply_composite(*n.op, operands, n.attrs) : n.op->apply(operands, n.attrs);
    });
    for (std::size_t i = 0; i < out.size(); ++i) values[n.out[i]] = std::move(out[i]);
  }
  Tensors results;
  for (const ValueId v : graph.outputs) results.push_back(values[v]);
  for (const Graph::VariableValue& w : graph.writes) results.push_back(values[w.value]);
  return results;
}

}  // namespace ferrite
