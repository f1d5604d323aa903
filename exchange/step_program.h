#pragma once
/// One step of a stream as a program, for runtimes that keep the states themselves.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::exchange {

/// A function of a step's input and the states, and what to call them.
///
///   const auto step = exchange::step_program(net, {.batch = 1, .width = 12});
///   onnx::write_onnx("step.onnx", step.function, step.inputs,
///                    {.inputs = step.input_names, .outputs = step.output_names});
///   const std::string text = exchange::to_stablehlo(trace(step.function, step.inputs), {.inline_variables = true});
struct StepProgram {
  /// x [B, D], of tokens i64 [B], then the states before the step -> y [B, N], then the states after it.
  std::function<Tensors(const Tensors&)> function;
  std::vector<Spec> inputs;
  std::vector<std::string> input_names;  ///< "x", then "h", ... as `Layer::states` calls them; of equal ones "h_1", ...
  std::vector<std::string> output_names;  ///< "y", then "h.next", ...
  /// The axes of the inputs that are the batch, for `dynamic` of either exporter: rows are then as many as a caller
  /// gives.
  std::vector<DynamicAxis> batch_axes;
  /// The states before the first step: zeros.
  Tensors initial_states() const;
};

/// One step of a causal layer or network for rows such as these; `layer` has to live as long as the function. The bits
/// of the layer on a whole sequence, step by step. Throws ValueError for a layer that has no step in operations
/// (Layer::step), and for one whose states grow, as those of attention.
StepProgram step_program(const nn::Layer& layer, const nn::StepRows& rows);

}  // namespace ferrite::exchange
