#pragma once
/// Checkpoints: functions whose intermediate values are computed again for the gradient instead of being stored.
#include <functional>

#include "ferrite/tensor/tensor.h"

namespace ferrite {

/// f(inputs), of which a tape stores the inputs alone: when gradients are taken, f runs a second time and is
/// differentiated then. Memory for one block at a time instead of all, for about one more forward pass; the gradients
/// have the same bits.
///
///   const Tensor h = checkpoint([&](const Tensor& t) { return block(t); }, x);
///
/// Parameters that f reads have their gradients as without a checkpoint. Random numbers of a Generator (dropout)
/// repeat: the second run begins from the states that the first one found, and leaves no state behind. What f refers to
/// must outlive the gradient. Without a tape it is f(inputs). May be nested, differentiated again, and stand in a
/// compiled function, which saves its memory where the gradient is taken inside, or in the body of a scan (whose own
/// checkpoint is `ScanOptions::checkpoint_every`).
///
/// The semantics are those of torch.utils.checkpoint with use_reentrant=False and preserve_rng_state=True. Throws
/// ValueError for a null function; TapeError where f reads a tensor on a tape that is no input, which would get no
/// gradient, and, when gradients are taken, where the second run gives other results than the first (because a module
/// was switched from training to evaluation, say).
Tensors checkpoint(const std::function<Tensors(const Tensors&)>& f, const Tensors& inputs);
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x);

}  // namespace ferrite
