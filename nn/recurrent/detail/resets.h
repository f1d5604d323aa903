#pragma once
/// What resets mean, in operations: for the unrolled form and for scans.
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn::detail {

/// bool [T, B]: whether the state is 0 before a step is computed, from options with resets. They count within the
/// lengths; reversed, a reset before step t + 1 is one before step t is computed.
Tensor reset_steps(const SequenceOptions& options, std::int64_t steps);
/// The state with zeros where the mask [B, 1] is set.
RecurrentState reset_where(const Tensor& mask, const RecurrentState& state);

}  // namespace ferrite::nn::detail
