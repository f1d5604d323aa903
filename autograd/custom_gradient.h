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

}  // namespace ferrite::detail
