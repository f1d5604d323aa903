#pragma once
/// The operations and composites that layers, losses and optimisers add to those of tensors.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// Returns the operations that layers, losses and optimisers add to those of tensors (`primitives()`), family by
/// family. `parse_graph` reads texts that name them if it is given `{.operations = nn::operations()}`.
std::span<const Primitive* const> operations();
/// Returns the records of the functions of layers and losses that are composed of operations, such as gru_step and
/// cross_entropy. `parse_graph` reads texts of graphs that keep such a function as one node if it is given this list.
std::span<const Primitive* const> composites();

}  // namespace ferrite::nn
