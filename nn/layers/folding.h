#pragma once
/// Nets for evaluation: norms folded into the layers before them.
#include <memory>

#include "ferrite/nn/layers/sequential.h"

namespace ferrite::nn {

/// A copy of a chain for evaluation, in which each batch norm (or instance norm with running numbers) that follows a
/// linear layer or a convolution of any kind is part of that layer: torch.nn.utils.fusion.fuse_conv_bn_eval, in nested
/// chains and residuals, too.
///
///   w' = w s,  b' = (b - running_mean) s + bias  with  s = weight / sqrt(running_var + epsilon)
///
/// The results differ from those of `chain` in evaluation by rounding alone; names of the other layers stay. Layers
/// with a computed parameter become plain ones. The copy is in evaluation: to train it would be to train another net.
/// Throws Error where a variable has no value yet.
std::unique_ptr<Sequential> fold_batch_norms(const Sequential& chain);

}  // namespace ferrite::nn
