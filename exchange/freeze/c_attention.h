#pragma once
/// The gradient of attention as other operations.
#include "ferrite/compile/graph.h"

namespace ferrite::exchange::detail {

/// Computes the results of an `attention_grad` node by other operations, in the order of its kernel, for finite
/// numbers.
Tensors attention_gradient(const Graph::Node& n, const Tensors& in);

}  // namespace ferrite::exchange::detail
