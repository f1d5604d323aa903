#pragma once
/// The operations whose gradients a program wrote by hand, as the compiler sees them.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// Operands, then values computed of them -> the values. Its gradient is a rule that the application carries
/// (autograd/custom_function.h, checkpoint.h, hooks.h); result i is operand i + operands - results, so a program that
/// is not differentiated any more does without.
std::span<const Primitive* const> custom_gradients();
bool is_custom_gradient(const Primitive& op);

/// The same values, from which the backward pass of a checkpoint computes again: what is computed of them is not merged
/// with what the forward pass computes of the operand, so that a plan need not store that.
const Primitive& recompute_primitive();

}  // namespace ferrite::detail
