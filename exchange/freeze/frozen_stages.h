#pragma once
/// The stages of a stream: parts that run each time the part before them gives a row.
#include <optional>
#include <vector>

#include "ferrite/exchange/freeze/frozen_program.h"
#include "ferrite/exchange/freeze/step_source.h"
#include "ferrite/nn/windowed.h"

namespace ferrite::exchange::detail {

/// A stage of a stream: a step, or a window over past rows which gives a row only at some of its inputs.
struct Stage {
  StepSource source;
  /// Of a stage with a stride, or one that looks ahead: its window. Its function computes an output as if it were due,
  /// and its line of past rows.
  std::optional<nn::StepWindow> window{};
};

/// Returns the stages of a layer. One without strides and delays is a single stage; `block` is the number of steps that
/// such a stage may run at once (step_source). Throws ExportError for a layer with a stride or delay that is neither a
/// window nor a chain, such as one inside a branch.
std::vector<Stage> stages_of(const nn::Layer& layer, const nn::StepRows& rows, std::int64_t block);

/// A stage, lowered.
struct FrozenStage {
  FrozenProgram program;
  std::optional<nn::StepWindow> window{};
};

}  // namespace ferrite::exchange::detail
