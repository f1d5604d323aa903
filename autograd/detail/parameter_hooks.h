#pragma once
/// The hooks on gradients of parameters, where gradients pass them.
#include <span>

#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

/// Runs the hooks of the parameters on their gradients, in the order in which they were set; undefined ones are passed
/// by. One load where no hook is set.
void run_parameter_hooks(std::span<const Parameter> parameters, Tensors& gradients);

}  // namespace ferrite::detail
