#pragma once
/// Checkpoints: functions whose intermediate values are recomputed for the gradient instead of being stored.
#include <functional>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// Returns f(inputs), of which a tape stores only the inputs: when gradients are taken, f runs a second time and is
/// differentiated then. This needs memory for one block at a time instead of all, at the cost of about one more forward
/// pass. The gradients are the same bit for bit.
///
///   const Tensor h = checkpoint([&](const Tensor& t) { return block(t); }, x);
///
/// Parameters that f reads get their gradients as without a checkpoint. Random numbers of a Generator (dropout) repeat:
/// the second run starts from the states that the first one found and does not change them. What f refers to must
/// outlive the gradient. Without a tape the function just calls f(inputs). Checkpoints may be nested, differentiated
/// again and used in a compiled function, where they save memory if the gradient is taken inside it, or in the body of
/// a scan (which has its own checkpoints, `ScanOptions::checkpoint_every`).
///
/// The semantics are those of torch.utils.checkpoint with use_reentrant=False and preserve_rng_state=True. Throws
/// ValueError for a null function and for undefined inputs or results; TapeError if f reads a tensor on a tape that is
/// not an input, which would get no gradient. Taking gradients throws TapeError if the second run gives results of
/// other types than the first, or if a module was switched between training and evaluation in the meantime.
Tensors checkpoint(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

}  // namespace ferrite
