#pragma once
/// Numbers of a data set that standardise the inputs of a net.
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// Gives a layer mean and deviation of a field of all examples [..., D], without padding. To be called with the
/// training part alone. Throws as nn::Standardize::adapt, and ValueError for a field that there is not and an empty
/// set.
void adapt(const nn::Standardize& layer, const Dataset& training, std::size_t field = 0);

/// Adapts the nn::Standardize with which a chain begins; a chain that begins with a chain is looked into. Throws as
/// above, and ValueError where the chain begins with another layer, or another nn::Standardize stands further on: what
/// reaches that one is not the data, and the overload above takes what is. Nothing has changed then.
void adapt(const nn::Sequential& net, const Dataset& training, std::size_t field = 0);

/// Whether there is an nn::Standardize anywhere in a chain, in the chains and branches within it too, so that `adapt`
/// is called for.
bool standardizes(const nn::Sequential& net);

}  // namespace ferrite::train
