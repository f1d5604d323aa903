#pragma once
/// Standardising a net's inputs by the mean and deviation of a data set.
#include "ferrite/nn/layers/sequential.h"
#include "ferrite/nn/layers/standardize.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

/// Sets a layer's mean and deviation to those of one field [..., D] over all examples, without padding. Call it with
/// the training part alone. Throws what nn::Standardize::adapt throws, and ValueError for a field that does not exist
/// or an empty set.
void adapt(const nn::Standardize& layer, const Dataset& training, std::size_t field = 0);

/// Adapts the nn::Standardize at the beginning of a chain, or of the chain that is its first layer. Throws what the
/// overload for a layer throws. Also throws ValueError when the chain begins with another layer, or when another
/// nn::Standardize follows: what reaches that one is not the data, so adapt it with the overload for a layer. Nothing
/// has changed then.
void adapt(const nn::Sequential& net, const Dataset& training, std::size_t field = 0);

/// Returns whether a chain, or a chain or branch within it, holds an nn::Standardize, which `adapt` must set before
/// training.
bool standardizes(const nn::Sequential& net);

}  // namespace ferrite::train
