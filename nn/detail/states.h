#pragma once
/// The states of a stream's steps: begun anew, saved and taken back in one way, whatever holds them.
#include <span>
#include <vector>

#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// Shows all states of a model's steps, in the order in which they are saved.
void each_state(Step& whole, const Step::StateVisitor& see);
/// All rows begin anew, or one of them. Allocates nothing.
void begin_states(Step& whole);
void begin_states(Step& whole, std::int64_t row);
std::vector<Tensor> saved_states(Step& whole);
/// Throws ValueError for another number of states, and for integers that no step leaves, ShapeError for other types;
/// nothing has changed then.
void restore_states(Step& whole, std::span<const Tensor> states);

}  // namespace ferrite::nn::detail
