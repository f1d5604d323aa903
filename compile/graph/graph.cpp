/// Programs: how they are built, validated, applied, compared and priced.
#include "ferrite/compile/graph.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <unordered_map>

#include "ferrite/compile/graph_view.h"
#include "ferrite/compile/rewrite.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/recorder.h"
#include "ferrite/tensor/strided.h"

namespace ferrite {

// ---- the index over a graph, and what depends on which of its values --------------------------------------

namespace detail {

GraphView::GraphView(const Graph& g) : graph_(&g), values_(g.values.size()) {
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    const Graph::Node& n = g.nodes[i];
    for (const ValueId v : n.in) {
      ++values_[v].uses;
      values_[v].last_user = i;
    }
    for (std::size_t k = 0; k < n.out.size(); ++k) {
      values_[n.out[k]].producer = i;
      values_[n.out[k]].result = k;
    }
  }
  const auto end = [&](ValueId v) {
    ++values_[v].uses;
    values_[v].end = true;
  };
  for (const ValueId v : g.outputs) end(v);
  for (const Graph::VariableValue& w : g.writes) end(w.value);
}

std::vector<char> mark_needed(const Graph& g, std::vector<char>& values, const std::function<bool(std::size_t)>& among,
                              bool pure) {
  std::vector<char> nodes(g.nodes.size());
  for (std::size_t i = g.nodes.size(); i-- > 0;) {
    const Graph::Node& n = g.nodes[i];
    if (among && !among(i)) continue;
    nodes[i] = std::any_of(n.out.begin(), n.out.end(), [&](ValueId v) { return values[v] != 0; }) ||
               (!pure && effects_of(g, n).must_run());
    if (nodes[i])
      for (const ValueId v : n.in) values[v] = true;
  }
  return nodes;
}

void mark_dependents(const Graph& g, std::vector<char>& values) {
  for (const Graph::Node& n : g.nodes) {
    char all = 0;
    for (const ValueId v : n.in) all = static_cast<char>(all | values[v]);
    for (const ValueId v : n.out) values[v] = static_cast<char>(values[v] | all);
  }
}

}  // namespace detail

// ---- graphs -----------------------------------------------------------------------------------------------

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

  /// Checks that every operand of a pointwise operation is a tensor or a literal, and at least one of them a tensor.
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

// ---- whether two programs are the same, and where they first differ ---------------------------------------

namespace detail {

bool same_constant(const Tensor& a, const Tensor& b) {
  if (a.identity() == b.identity()) return true;
  if (a.spec() != b.spec()) return false;
  const Tensor x = dense(a), y = dense(b);
  const std::int64_t bytes = x.numel() * size_of(x.dtype());
  return bytes == 0 || std::memcmp(x.raw(), y.raw(), static_cast<std::size_t>(bytes)) == 0;
}

bool same_graph(const Graph& a, const Graph& b) {
  if (a.values != b.values || a.inputs != b.inputs || a.outputs != b.outputs || a.nodes.size() != b.nodes.size() ||
      a.constants.size() != b.constants.size())
    return false;
  for (std::size_t i = 0; i < a.nodes.size(); ++i) {
    const Graph::Node &m = a.nodes[i], &n = b.nodes[i];
    if (m.op != n.op || m.scope != n.scope || !std::ranges::equal(m.in, n.in) || !std::ranges::equal(m.out, n.out) ||
        !m.attrs.same_bits(n.attrs))
      return false;
  }
  for (std::size_t i = 0; i < a.constants.size(); ++i)
    if (a.constants[i].value != b.constants[i].value || !same_constant(a.constants[i].tensor, b.constants[i].tensor))
      return false;
  return true;
}

namespace {

/// Returns the first line in which two texts differ, as one text for the error.
std::string first_line(const std::string& was, const std::string& is) {
  std::istringstream a(was), b(is);
  std::string x, y;
  const auto next = [](std::istringstream& s, std::string& line) {
    if (!std::getline(s, line)) line = "nothing";
    line.erase(0, line.find_first_not_of(' '));
  };
  do next(a, x), next(b, y);
  while (x == y);
  return "'" + x + "' is now '" + y + "'";
}

}  // namespace

std::string first_difference(const Graph& was, const Graph& is) {
  const std::string a = was.str(), b = is.str();
  if (a != b) return first_line(a, b);
  for (std::size_t i = 0; i < was.variables.size(); ++i)
    if (!(was.variables[i] == is.variables[i]))
      return "another variable '" + is.variables[i].name() + "' is read or written";
  for (std::size_t i = 0; i < was.constants.size(); ++i)
    if (!same_constant(was.constants[i].tensor, is.constants[i].tensor))
      return "the captured tensor %" + std::to_string(is.constants[i].value) + " " +
             is.constants[i].tensor.spec().str() + " has other elements";
  return {};
}

}  // namespace detail

// ---- what running a program costs, as a whole and layer by layer ------------------------------------------

namespace {

Cost cost_of(const Graph& g, const Graph::Node& n) {
  const auto specs_of = [&](const auto& values) {
    Specs specs;
    for (const ValueId v : values) specs.push_back(g.values[v]);
    return specs;
  };
  const Specs in = specs_of(n.in), out = specs_of(n.out);
  return cost_of(*n.op, {in.data(), in.size()}, {out.data(), out.size()}, n.attrs);
}

}  // namespace

Cost cost_of(const Graph& graph) {
  Cost cost;
  for (const Graph::Node& n : graph.nodes) cost += cost_of(graph, n);
  return cost;
}

std::vector<LayerCost> cost_by_layer(const Graph& graph) {
  std::vector<LayerCost> layers;
  std::unordered_map<std::string_view, std::size_t> at;
  for (const Graph::Node& n : graph.nodes) {
    const auto [found, fresh] = at.try_emplace(n.scope.path(), layers.size());
    if (fresh) layers.push_back({n.scope, 0, {}});
    LayerCost& layer = layers[found->second];
    layer.operations += 1;
    layer.cost += cost_of(graph, n);
  }
  return layers;
}

std::string cost_table(const Graph& graph) {
  constexpr std::size_t kColumns = 4;
  std::vector<std::array<std::string, kColumns>> rows = {{"layer", "operations", "multiply-adds", "bytes"}};
  LayerCost total;
  const auto add = [&](const std::string& name, const LayerCost& l) {
    rows.push_back(
        {name, std::to_string(l.operations), std::to_string(l.cost.multiply_adds), std::to_string(l.cost.bytes)});
  };
  for (const LayerCost& l : cost_by_layer(graph)) {
    add(l.scope.empty() ? "(no layer)" : std::string(l.scope.path()), l);
    total.operations += l.operations;
    total.cost += l.cost;
  }
  add("total", total);
  std::array<std::size_t, kColumns> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    text += row[0] + std::string(widths[0] - row[0].size(), ' ');
    for (std::size_t i = 1; i < kColumns; ++i) text += std::string(2 + widths[i] - row[i].size(), ' ') + row[i];
    text += '\n';
  }
  return text;
}

}  // namespace ferrite
