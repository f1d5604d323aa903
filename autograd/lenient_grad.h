#pragma once
/// Gradients for the compiler, `grad(f)`, `gradcheck` and operations of other folders: of functions that may not depend
/// on their variables, of operations by their definitions, and the operations that carry a hand-written gradient.
#include <span>

#include "ferrite/autograd/tape.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// Returns gradients as Tape::grad does, but treats an `of` that is not on the tape as a constant, whose gradient is
/// zeros.
Tensors lenient_grad(Tape& tape, std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options = {});
inline Tensors lenient_grad(Tape& tape, const GradOf& of, std::span<const Tensor> wrt, GradOptions options = {}) {
  return lenient_grad(tape, {&of, 1}, wrt, options);
}

/// Returns the gradient of an operation as that of its `reference`, recorded as usual: for operations that are
/// gradients of others, and for those without a shorter gradient.
Tensors gradient_of_reference(const Primitive& op, const Vjp& v);

/// Returns the derivatives of the tensors `of` along tangents of watched ones (undefined tangents count as zeros), in
/// one sweep over the tape; undefined where no tangent arrives. May be called again; a tape around this one records it.
Tensors push_forward(Tape& tape, std::span<const Tensor> of, std::span<const Tensor> wrt,
                     std::span<const Tensor> tangents);

/// Returns the operations that carry a hand-written gradient (autograd/custom_function.h, checkpoint.h, hooks.h). They
/// map operands, followed by values computed from them, to these values. Result i is operand i + operands - results, so
/// a program that is no longer differentiated can drop the operation.
std::span<const Primitive* const> custom_gradients();
bool is_custom_gradient(const Primitive& op);

/// Returns the operation with which the backward pass of a checkpoint recomputes: an identity. What is computed from
/// its result is not merged with what the forward pass computes from the operand, so that a plan need not store the
/// latter.
const Primitive& recompute_primitive();

}  // namespace ferrite::detail
