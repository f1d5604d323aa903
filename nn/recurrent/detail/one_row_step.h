#pragma once
/// The step of a small recurrent layer in a stream with a single row.
#include <memory>
#include <vector>

#include "ferrite/nn/recurrent/detail/cells.h"
#include "ferrite/nn/recurrent/gated.h"

namespace ferrite::nn::detail {

/// Returns a step that computes its product with W_hh as soon as the state is known, not when the next input comes.
/// Returns null for several rows, for f64, for weights that do not fit into the first cache, and for cells whose
/// products wait for each other.
std::unique_ptr<Step> one_row_step(const GatedCell& cell, const RecurrentSizes& sizes,
                                   const std::vector<RecurrentWeights<Parameter>>& weights,
                                   const InitialStates& initial, const StepRows& in);

}  // namespace ferrite::nn::detail
