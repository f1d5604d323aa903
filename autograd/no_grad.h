#pragma once
/// The guard under which nothing is recorded for gradients.
#include "ferrite/tensor/recorder.h"

namespace ferrite {

/// While it lives, no tape records what runs on this thread, as under torch.no_grad. Results are constants for
/// gradients and parameters are read as values. A function that is traced meanwhile still has the operations in its
/// program.
///
///   const NoGrad guard;
///   const Tensor target = teacher(x);
///
/// `detach(x)` detaches a single tensor; `NewFrame` also hides tracers.
using NoGrad = NoTapes;

}  // namespace ferrite
