#pragma once
/// What the kernels of gradients compute, in operations that have gradients themselves.
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/primitive.h"

namespace ferrite::detail {

/// Whether an operation is the gradient of a recurrent sequence: a kernel without a gradient of its own.
bool is_sequence_grad(const Primitive& op);

/// The results of such an operation from the tape of the sequence's composition. They do not depend on what the
/// sequence saved for the kernel.
Tensors composed_gradient(const Primitive& op, const Tensors& in, const Attrs& attrs);

}  // namespace ferrite::detail
