#pragma once
/// The states of a stream's steps: begun anew, saved and taken back in one way, whatever holds them.
#include <span>
#include <vector>

#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// All rows begin anew, or one of them. Allocates nothing.
void begin_states(Step& step);
void begin_states(Step& step, std::int64_t row);
std::vector<Tensor> saved_states(Step& step);
/// Throws ValueError for another number of states, and for integers that no step leaves, ShapeError for other types;
/// nothing has changed then.
void restore_states(Step& step, std::span<const Tensor> states);

}  // namespace ferrite::nn::detail
