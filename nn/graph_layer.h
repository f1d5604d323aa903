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

/// Says that a constant of a graph becomes a variable of a GraphLayer, and under which name.
struct GraphVariable {
  std::size_t constant = 0;                     ///< the constant's position in Graph::constants
  std::string name;                             ///< the variable's name in the layer, "head.weight"
  VariableKind kind = VariableKind::parameter;  ///< whether the variable is a parameter, a buffer or a state
};

/// Describes one state of a graph that computes one time step (GraphOptions::states).
struct GraphState {
  std::string name;  ///< the name in error messages, "h"
  int rows = 0;      ///< the axis of the state along which the rows of the batch lie
};

/// Options of a GraphLayer: the graph that it runs, and what its constants, inputs and outputs mean.
struct GraphOptions {
  std::shared_ptr<const Graph> graph{};    ///< the program, which several layers may share
  std::vector<GraphVariable> variables{};  ///< constants of the graph that become variables of the layer
  /// One entry for each state if the graph computes one time step: input k after the first is the state before the
  /// step, output k the state after it. Empty for a graph that maps its inputs to outputs at once.
  std::vector<GraphState> states{};
  std::string kind = "graph";  ///< the kind of the layer in errors and summaries
};

/// A layer that runs a graph. The variables that the graph reads and writes become parameters, buffers and states of
/// the layer, under their names and with copies of their values, and so do the constants that `variables` names; other
/// constants stay. It runs compiled, gradients reach its parameters and inputs, and it is copied, saved and loaded like
/// any layer. Its inputs must have the types of the graph's inputs, the batch included. Whether its layers train was
/// fixed when the graph was traced.
///
///   const Graph g = trace([&](const Tensors& x) { return Tensors{net(x[0])}; }, std::vector<Spec>{{{8, 3}}});
///   const nn::GraphLayer layer({.graph = std::make_shared<Graph>(g)});  // the names of net's parameters
///
/// With `states` the graph computes one step: x [B, D] and states -> y [B, N] and states. Then the layer is causal: it
/// maps x [B, T, D] -> [B, T, N] by a scan of the step from zeros, and it streams.
class GraphLayer final : public LayerOf<GraphLayer, GraphOptions> {
 public:
  /// Creates the layer; `init` is not used, because all values are given. Throws TraceError for a graph that is not
  /// valid; ValueError for none, for one without inputs or outputs, for `variables` that are not constants of it, names
  /// that are taken and a number of states that does not fit; ShapeError for a state whose type changes.
  explicit GraphLayer(const GraphOptions& options, const Init& init = {});

  std::string kind() const override { return options().kind; }
  /// Returns the first output of a graph of one input, or the outputs of all steps if it has states. Throws ShapeError
  /// or DtypeError for an x of another type.
  Tensor forward(const Tensor& x, const Context&) const override;
  /// Runs the graph once: takes all its inputs and returns all its outputs, in their orders in the graph.
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
