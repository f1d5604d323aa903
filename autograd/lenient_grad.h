#pragma once
/// Gradients of functions that may not depend on their variables, and of operations by their definitions: what the
/// compiler, `grad(f)`, `gradcheck` and operations of other rooms need.
#include <span>

#include "ferrite/autograd/tape.h"

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

}  // namespace ferrite::detail
