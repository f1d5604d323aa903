#pragma once
/// One step of a stream as a program, for runtimes that keep the states themselves.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::exchange {

/// A step as a function of its input and the states, with names for its inputs and outputs.
///
///   const auto step = exchange::step_program(net, {.batch = 1, .width = 12});
///   onnx::write_onnx("step.onnx", step.function, step.inputs,
///                    {.inputs = step.input_names, .outputs = step.output_names});
///   const std::string text = exchange::to_stablehlo(trace(step.function, step.inputs), {.inline_variables = true});
struct StepProgram {
  /// Runs the step: x [B, D] (for tokens i64 [B]) and the states before it -> y [B, N] and the states after it.
  std::function<Tensors(const Tensors&)> function;
  std::vector<Spec> inputs;               ///< types of x, then of the states
  std::vector<std::string> input_names;   ///< "x", then "h", ... as in `Layer::states`; duplicates get "h_1", ...
  std::vector<std::string> output_names;  ///< "y", then "h.next", ...
  /// The batch axes of the inputs, for the option `dynamic` of either exporter, which leaves the number of rows open.
  std::vector<DynamicAxis> batch_axes;
  std::vector<nn::StepState> states;  ///< the states, in the order of their inputs
  /// Returns the states before the first step: zeros, or the first values that the layer gives them
  /// (nn::StepState::initial).
  Tensors initial_states() const;
};

/// Returns one step of a causal layer or network for `rows`; `layer` has to live as long as the function. Step by step
/// it gives bit for bit what the layer gives on a whole sequence. Throws ValueError for a layer that has no step in
/// operations (Layer::step), and for one whose states grow, as those of attention.
StepProgram step_program(const nn::Layer& layer, const nn::StepRows& rows);

}  // namespace ferrite::exchange
