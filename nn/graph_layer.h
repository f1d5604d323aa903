#pragma once
/// Traced programs as layers.
#include <memory>
#include <string>
#include <vector>

#include "ferrite/compile/compile.h"
#include "ferrite/compile/graph.h"
#include "ferrite/compile/scan.h"
#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

/// A constant of a graph that becomes a variable of a layer.
struct GraphVariable {
  std::size_t constant = 0;  ///< position in Graph::constants
  std::string name;          ///< "head.weight"
  VariableKind kind = VariableKind::parameter;
};

/// A state of a graph that is one step.
struct GraphState {
  std::string name;  ///< "h": what errors call it
  int rows = 0;      ///< its axis of the batch
};

struct GraphOptions {
  std::shared_ptr<const Graph> graph{};
  std::vector<GraphVariable> variables{};
  /// Of a graph that is one step: its last inputs, which its last outputs replace.
  std::vector<GraphState> states{};
  std::string kind = "graph";  ///< the word for it in errors and summaries
};

/// A graph as a layer. The variables that it reads and writes become parameters, buffers and states of the layer, under
/// their names and with copies of their values, and so do the constants that `variables` names; other constants stay.
/// It runs compiled, gradients reach its parameters and its inputs, and it is copied, saved and loaded as any layer.
/// Its inputs have the types of the graph's, the batch included; whether it trains is what the traced function saw.
///
///   const Graph g = trace([&](const Tensors& x) { return Tensors{net(x[0])}; }, std::vector<Spec>{{{8, 3}}});
///   const nn::GraphLayer layer({.graph = std::make_shared<Graph>(g)});  // the names of net's parameters
///
/// With `states` the graph is one step: x [B, D] and states -> y [B, N] and states. The layer is causal then: x [B, T,
/// D]
/// -> [B, T, N] runs the step as a scan from zeros, and it streams.
class GraphLayer final : public LayerOf<GraphLayer, GraphOptions> {
 public:
  /// Throws TraceError for a graph that is not valid, ValueError for none, for one without inputs or outputs, for
  /// variables that are no constants, names that are taken and states that are not there; ShapeError for a state that
  /// comes out with another type. `init` is not used: all values are given.
  explicit GraphLayer(const GraphOptions& options, const Init& init = {});

  std::string kind() const override { return options().kind; }
  /// The first output of a graph of one input; of a step, all steps. Throws ShapeError, DtypeError for an x of another
  /// type.
  Tensor forward(const Tensor& x, const Context&) const override;
  /// All outputs from all inputs.
  Tensors run(const Tensors& inputs) const;

  bool causal() const override { return !options().states.empty(); }
  StepInput step_input() const override;
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;

 private:
  struct Program;
  void check(const Tensors& inputs) const;
  Variable variable(const std::string& name, VariableKind kind, const Tensor& value);

  std::shared_ptr<const Program> program_;
};

extern template class LayerOf<GraphLayer, GraphOptions>;

}  // namespace ferrite::nn
