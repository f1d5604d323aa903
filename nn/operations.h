#pragma once
/// The operations and composites that layers, losses and optimisers add to those of tensors.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// The operations that layers, losses and optimisers add to those of tensors (`primitives()`), in the order of the
/// families. `parse_graph` reads texts that name them where it is given them: `{.operations = nn::operations()}`.
std::span<const Primitive* const> operations();
/// The functions of layers and losses that are composed of operations: a step of a GRU, cross_entropy.
std::span<const Primitive* const> composites();

}  // namespace ferrite::nn
