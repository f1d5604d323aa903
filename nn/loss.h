#pragma once
/// Losses and accuracy.
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {

/// How the losses of the samples become one result.
enum class Reduction : std::uint8_t { mean, sum, none };

/// -log softmax(logits)[target], as torch.nn.functional.cross_entropy: logits [B, C], integer targets [B] -> [], or
/// [B] with Reduction::none. Throws ShapeError for other shapes or a target outside [0, C), DtypeError for targets
/// that are not integers.
Tensor cross_entropy(const Tensor& logits, const Tensor& targets, Reduction reduction = Reduction::mean);
/// (prediction - target)^2. Throws ShapeError unless the shapes agree.
Tensor mse_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
/// |prediction - target|.
Tensor l1_loss(const Tensor& prediction, const Tensor& target, Reduction reduction = Reduction::mean);
/// Binary cross-entropy of targets in [0, 1] from logits: y softplus(-x) + (1 - y) softplus(x). A sum of terms that are
/// never negative, so small losses keep their digits; softplus(x) - x y has none left beyond x = 17 in f32.
Tensor bce_with_logits(const Tensor& logits, const Tensor& target, Reduction reduction = Reduction::mean);

/// Share of rows of logits [B, C] whose largest entry stands at the target [B]. Not differentiable. Throws as
/// cross_entropy does.
double accuracy(const Tensor& logits, const Tensor& targets);

}  // namespace ferrite::nn
