#pragma once
/// Gradients of functions that may not depend on their variables: what the compiler, `grad(f)` and `gradcheck` need.
#include <span>

#include "ferrite/autograd/tape.h"

namespace ferrite::detail {

/// As Tape::grad, but zeros where `of` is not on the tape: the gradient of a constant.
Tensors lenient_grad(Tape& tape, const Tensor& of, std::span<const Tensor> wrt, GradOptions options = {},
                     const Tensor& cotangent = {});

}  // namespace ferrite::detail
