#pragma once
/// Numbers of a data set that standardise the inputs of a net.
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// Gives a layer mean and deviation of a field of all examples [..., D], without padding. To be called with the
/// training part alone. Throws as nn::Standardize::adapt, and ValueError for a field that there is not and an empty
/// set.
void adapt(const nn::Standardize& layer, const Dataset& training, std::size_t field = 0);

}  // namespace ferrite::train
