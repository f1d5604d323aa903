#pragma once
/// Gradients of functions that may not depend on their variables: what the compiler, `grad(f)` and `gradcheck` need.
#include <span>

#include "ferrite/autograd/tape.h"

namespace ferrite::detail {

/// As Tape::grad, but what is not on the tape is a constant, and the gradient of constants is zeros.
Tensors lenient_grad(Tape& tape, std::span<const GradOf> of, std::span<const Tensor> wrt, GradOptions options = {});
inline Tensors lenient_grad(Tape& tape, const GradOf& of, std::span<const Tensor> wrt, GradOptions options = {}) {
  return lenient_grad(tape, {&of, 1}, wrt, options);
}

/// Derivatives of tensors along tangents of watched ones (undefined: zeros), in one sweep over what the tape recorded;
/// undefined where no tangent arrives. May be asked again, and is recorded by a tape around this one.
Tensors push_forward(Tape& tape, std::span<const Tensor> of, std::span<const Tensor> wrt,
                     std::span<const Tensor> tangents);

}  // namespace ferrite::detail
