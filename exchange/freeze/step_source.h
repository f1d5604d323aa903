#pragma once
/// The step of a stream as a function of tensors, with its states: what is written as C.
#include <functional>
#include <string>
#include <vector>

#include "ferrite/exchange/program_stream.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/step.h"

namespace ferrite::exchange::detail {

/// A state of a step, as the function sees it.
struct SourceState {
  std::string name;
  Spec spec{};
  Tensor first{};             ///< the value before the first step
  std::int64_t capacity = 0;  ///< of a state that grows along axis 1: maximum number of entries
  bool counts = false;        ///< the numbers of entries of the states that grow, i64 [B]
};

/// A function x..., states... -> y..., next states... of fixed types. Of a state that grows it returns the new entry; a
/// state that counts is not returned.
struct StepSource {
  std::function<Tensors(const Tensors&)> function;
  std::vector<std::string> input_names, output_names;
  std::vector<Spec> inputs;  ///< types of x
  std::vector<SourceState> states;
  /// The same for `block_steps` steps at once: x [n, D], states -> y [n, N], states. Null: there is none, because each
  /// step waits for the one before, or there are several rows.
  std::function<Tensors(const Tensors&)> block{};
  std::int64_t block_steps = 0;
};

/// Returns the step of a layer: its own (Layer::step), or the one that is found in `forward`; the latter with a
/// function for `block` steps at once, unless that is 0.
StepSource step_source(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t block);

/// Returns the step of a program over time (ProgramStream), with names for its inputs and outputs; inputs and outputs
/// that are a state are not among them.
StepSource program_source(const ProgramStream::Program& program, std::span<const ProgramInput> inputs,
                          const ProgramStreamOptions& options, std::vector<std::string> input_names,
                          std::vector<std::string> output_names);

}  // namespace ferrite::exchange::detail
