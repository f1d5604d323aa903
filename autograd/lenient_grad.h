#pragma once
/// Gradients of functions that may not depend on their variables, and of operations by their definitions; the
/// operations whose gradients a program wrote by hand: what the compiler, `grad(f)`, `gradcheck` and operations of
/// other rooms need.
#include <span>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// As Tape::grad, but what is not on the tape is a constant, and the gradient of constants is zeros.
Tensors lenient_grad(Tape& tape, std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options = {});
inline Tensors lenient_grad(Tape& tape, const GradOf& of, std::span<const Tensor> wrt, GradOptions options = {}) {
  return lenient_grad(tape, {&of, 1}, wrt, options);
}

/// The gradient of an operation as that of its `reference`, recorded as any other: for operations that are gradients of
/// others, and for those that have no shorter one.
Tensors gradient_of_reference(const Primitive& op, const Vjp& v);

/// Derivatives of tensors along tangents of watched ones (undefined: zeros), in one sweep over what the tape recorded;
/// undefined where no tangent arrives. May be asked again, and is recorded by a tape around this one.
Tensors push_forward(Tape& tape, std::span<const Tensor> of, std::span<const Tensor> wrt,
                     std::span<const Tensor> tangents);

/// Operands, then values computed of them -> the values. Its gradient is a rule that the application carries
/// (autograd/custom_function.h, checkpoint.h, hooks.h); result i is operand i + operands - results, so a program that
/// is not differentiated any more does without.
std::span<const Primitive* const> custom_gradients();
bool is_custom_gradient(const Primitive& op);

/// The same values, from which the backward pass of a checkpoint computes again: what is computed of them is not merged
/// with what the forward pass computes of the operand, so that a plan need not store that.
const Primitive& recompute_primitive();

}  // namespace ferrite::detail
