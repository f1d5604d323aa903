#pragma once
/// Reductions, weights, masks and lengths: how the losses of elements become one result.
#include <cstdint>
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// How the losses of elements become one result. `batch_mean` is the sum divided by the extent of the first axis.
enum class Reduction : std::uint8_t { mean, sum, none, batch_mean };

/// What every loss of elements takes beside its own parameters.
///
///     nn::mse_loss(y, target, {.lengths = lengths});               // a padded batch [B, T, D]: the mean of real steps
///     nn::huber_loss(y, target, 0.5, {.reduction = nn::Reduction::sum, .element_weight = w});
///
/// Padding may hold anything, NaN and infinities included: it adds nothing to the loss, and gradients with respect to
/// it are 0. So may an element of weight 0, where PyTorch's results and gradients are NaN; the gradient of such a
/// weight is the element's loss where that is finite, else 0. The mean of no elements is NaN.
struct LossOptions {
  Reduction reduction = Reduction::mean;
  /// Multiplies the losses, of their dtype; broadcasts to their shape. Means are weighted ones: divided by the sum of
  /// the weights, unless the loss says otherwise. Weights of classes are `class_weight` of the losses that have them.
  Tensor element_weight{};
  Tensor mask{};     ///< bool, its shape the first axes of that of the losses: false where an element does not count
  Tensor lengths{};  ///< i64 [B] for losses [B, T, ...], each in 0..T: steps from there on do not count
};

/// Whether step t of row b lies within the row's length: lengths i64 [B] -> bool [B, steps]. Throws ShapeError unless
/// the lengths have rank 1 and lie in 0..steps, DtypeError unless they are i64.
Tensor length_mask(const Tensor& lengths, std::int64_t steps);

/// Losses of elements as one result: what the losses of this library do, for losses of your own. Throws ShapeError for
/// a weight, a mask or lengths that do not fit the losses, DtypeError for a mask that is not bool and lengths that are
/// not i64.
Tensor reduce_loss(const Tensor& losses, const LossOptions& options = {});

namespace detail {
/// The operations of losses over alignments, with their gradients; the losses that are composed of operations.
std::span<const Primitive* const> loss_operations();
std::span<const Primitive* const> loss_composites();
}  // namespace detail

}  // namespace ferrite::nn
