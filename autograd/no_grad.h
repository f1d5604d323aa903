#pragma once
/// The guard under which nothing is part of a gradient.
#include "ferrite/tensor/recorder.h"

namespace ferrite {

/// While it lives, no tape records what runs on this thread: torch.no_grad. What is computed is a constant for
/// gradients, parameters are read as values, and a function that is traced meanwhile has the operations as part of its
/// program.
///
///   const NoGrad guard;
///   const Tensor target = teacher(x);
///
/// `detach(x)` cuts one tensor off; `NewFrame` hides tracers, too.
using NoGrad = NoTapes;

}  // namespace ferrite
