#pragma once
/// Resets, saves and restores the states of a stream, whichever steps hold them.
#include <span>
#include <vector>

#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// Shows all states of a model's steps, in the order in which they are saved.
void each_state(Step& whole, const Step::StateVisitor& see);
/// Resets all rows. Allocates nothing.
void begin_states(Step& whole);
/// Resets one row. Allocates nothing.
void begin_states(Step& whole, std::int64_t row);
/// Copies all states, in order.
std::vector<Tensor> saved_states(Step& whole);
/// Takes over states that `saved_states` gave. Throws ValueError for another number of them and for counts that no step
/// leaves, ShapeError for other types; nothing has changed then.
void restore_states(Step& whole, std::span<const Tensor> states);

}  // namespace ferrite::nn::detail
