/// Layers that run traced programs: their variables and calls.
#include "ferrite/nn/graph_layer.h"

#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

/// Exchanges the first two axes: [B, T, ...] -> [T, B, ...], and back.
Tensor swap_time(const Tensor& x) {
  Shape order{1, 0};
  for (int k = 2; k < x.rank(); ++k) order.push_back(k);
  return permute(x, order);
}

}  // namespace

/// The graph with its variables and named constants as further inputs, together with these variables.
struct GraphLayer::Program {
  Graph graph;
  std::vector<Variable> read, written;
  Compiled<std::function<Tensors(const Tensors&)>> compiled;
  Scan scan;

  explicit Program(const Graph& g)
      : graph(g),
        compiled(std::function<Tensors(const Tensors&)>([this](const Tensors& in) { return apply(in); }), {}),
        scan([this](const Tensors& carry, const Tensors& x) -> ScanStep {
          const StepResult r = step(x[0], carry);
          return {r.states, {r.y}};
        }) {}
  Program(const Program&) = delete;

  /// Runs the graph in the present frame; reads and assigns the variables there, too.
  Tensors apply(const Tensors& in) const {
    std::vector<Tensor> all(in.begin(), in.end());
    for (const Variable& c : read) all.push_back(c.value());
    Tensors out = replay(graph, all);
    const std::size_t own = out.size() - written.size();
    for (std::size_t i = 0; i < written.size(); ++i) written[i].assign(out[own + i]);
    while (out.size() > own) out.pop_back();
    return out;
  }
  StepResult step(const Tensor& x, const Tensors& states) const {
    Tensors in = {x};
    for (const Tensor& s : states) in.push_back(s);
    Tensors out = apply(in);
    StepResult r{out[0]};
    for (std::size_t i = 1; i < out.size(); ++i) r.states.push_back(std::move(out[i]));
    return r;
  }
};

GraphLayer::GraphLayer(const GraphOptions& o, const Init&) : LayerOf(o) {
  if (!o.graph) throw ValueError("graph: there is none; give GraphOptions::graph");
  const Graph& g = *o.graph;
  g.validate();
  if (g.inputs.empty() || g.outputs.empty())
    throw ValueError("graph: a layer needs inputs and outputs, the graph has " + std::to_string(g.inputs.size()) +
                     " and " + std::to_string(g.outputs.size()));
  const std::size_t states = o.states.size();
  if (states > 0 && (g.inputs.size() != 1 + states || g.outputs.size() != 1 + states))
    throw ValueError("graph: a step with " + std::to_string(states) +
                     " states takes and gives one more, the graph has " + std::to_string(g.inputs.size()) +
                     " inputs and " + std::to_string(g.outputs.size()) + " outputs");
  for (std::size_t k = 1; k <= states; ++k)
    if (g.values[g.inputs[k]] != g.values[g.outputs[k]])
      throw ShapeError("graph: the state '" + o.states[k - 1].name + "' goes into the step as " +
                       g.values[g.inputs[k]].str() + " and comes out as " + g.values[g.outputs[k]].str());

  const auto program = std::make_shared<Program>(g);
  Graph& own = program->graph;
  std::vector<Variable> variables;
  for (const Variable& c : g.variables) variables.push_back(variable(c.name(), c.kind(), c.peek()));
  for (const Graph::VariableValue& r : g.reads) {
    own.inputs.push_back(r.value);
    program->read.push_back(variables[r.variable]);
  }
  for (const Graph::VariableValue& w : g.writes) {
    own.outputs.push_back(w.value);
    program->written.push_back(variables[w.variable]);
  }
  own.variables.clear(), own.reads.clear(), own.writes.clear();
  for (const GraphVariable& v : o.variables) {
    if (v.constant >= g.constants.size())
      throw ValueError("graph: there is no constant " + std::to_string(v.constant) + " for '" + v.name +
                       "'; the graph has " + std::to_string(g.constants.size()));
    const Graph::Constant& c = g.constants[v.constant];
    const auto same = [&](const Graph::Constant& other) { return other.value == c.value; };
    if (std::erase_if(own.constants, same) == 0)
      throw ValueError("graph: the constant " + std::to_string(v.constant) + " has two names, '" + v.name +
                       "' is the second");
    own.inputs.push_back(c.value);
    program->read.push_back(variable(v.name, v.kind, contiguous(c.tensor)));
  }
  program_ = program;
}

Variable GraphLayer::variable(const std::string& name, VariableKind kind, const Tensor& value) {
  if (kind == VariableKind::buffer) return buffer(name, value);
  if (kind == VariableKind::state) return state(name, value);
  const Fill fill([value](const Shape&, const RandomKey&, Dtype) { return value; }, false);
  return parameter(name, value.shape(), fill, {.seed = {}, .prefix = {}, .dtype = value.dtype()});
}

void GraphLayer::check(const Tensors& inputs) const {
  const Graph& g = *options().graph;
  if (inputs.size() != g.inputs.size())
    throw ValueError(kind() + ": takes " + std::to_string(g.inputs.size()) + " inputs, got " +
                     std::to_string(inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Spec& wanted = g.values[g.inputs[i]];
    const std::string text =
        kind() + ": input " + std::to_string(i) + " must be " + wanted.str() + ", got " + inputs[i].spec().str();
    if (inputs[i].dtype() != wanted.dtype) throw DtypeError(text);
    if (inputs[i].shape() != wanted.shape) throw ShapeError(text);
  }
}

Tensors GraphLayer::run(const Tensors& inputs) const {
  (void)whole();
  return inside([&] {
    check(inputs);
    return program_->compiled(inputs);
  });
}

Tensor GraphLayer::forward(const Tensor& x, const Context&) const {
  if (options().states.empty()) {
    check({x});
    return program_->compiled(Tensors{x})[0];
  }
  const Graph& g = *options().graph;
  const Spec& row = g.values[g.inputs[0]];
  Shape wanted = row.shape;
  wanted.insert(1, x.rank() > 1 ? x.shape()[1] : 0);
  if (x.dtype() != row.dtype)
    throw DtypeError(kind() + ": takes " + std::string(name_of(row.dtype)) + ", got " + x.spec().str());
  if (x.shape() != wanted)
    throw ShapeError(kind() + ": expects rows " + row.str() + " with steps on axis 1, got " + x.spec().str());
  Tensors zero;
  for (std::size_t k = 1; k < g.inputs.size(); ++k) {
    const Spec& s = g.values[g.inputs[k]];
    zero.push_back(zeros(s.shape, s.dtype));
  }
  return swap_time(program_->scan(zero, {swap_time(x)}).y[0]);
}

StepInput GraphLayer::step_input() const {
  const Graph& g = *options().graph;
  const Spec& row = g.values[g.inputs[0]];
  return {row.shape.rank() == 2 ? row.shape[1] : 1, row.dtype};
}

std::vector<StepState> GraphLayer::states(const StepRows&) const {
  const Graph& g = *options().graph;
  std::vector<StepState> all;
  for (std::size_t k = 0; k < options().states.size(); ++k) {
    const Spec& s = g.values[g.inputs[k + 1]];
    const GraphState& own = options().states[k];
    all.push_back({.name = own.name, .shape = s.shape, .dtype = s.dtype, .rows = own.rows});
  }
  return all;
}

StepResult GraphLayer::step(const Tensor& x, const Tensors& states) const {
  if (options().states.empty()) return {};
  Tensors in = {x};
  for (const Tensor& s : states) in.push_back(s);
  check(in);
  return program_->step(x, states);
}

template class LayerOf<GraphLayer, GraphOptions>;

}  // namespace ferrite::nn
