#pragma once
/// Reductions, weights, masks and lengths: how elementwise losses become one result.
#include <cstdint>
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// How elementwise losses become one result: their mean or sum, a scalar []; the losses themselves (none); or their sum
/// divided by the extent of the first axis, a scalar, too (batch_mean).
enum class Reduction : std::uint8_t { mean, sum, none, batch_mean };

/// Options of every elementwise loss, besides its own parameters: how its losses are reduced, and which count how much.
///
///     nn::mse_loss(y, target, {.lengths = lengths});               // a padded batch [B, T, D]: the mean of real steps
///     nn::huber_loss(y, target, 0.5, {.reduction = nn::Reduction::sum, .element_weight = w});
///
/// Padding may hold anything, including NaN and infinity: it adds nothing to the loss, and gradients with respect to it
/// are 0. The same holds for an element of weight 0, where PyTorch's results and gradients are NaN; the gradient of
/// such a weight is the element's loss if that is finite, otherwise 0. The mean of no elements is NaN.
struct LossOptions {
  Reduction reduction = Reduction::mean;  ///< the default gives a scalar []
  /// Weights of the elements, of the losses' dtype, broadcast to their shape. Means are weighted: divided by the sum of
  /// the weights, unless the loss says otherwise. Weights of classes are `class_weight` of the losses that have them.
  Tensor element_weight{};
  Tensor mask{};     ///< bool, with the first axes of the losses' shape: elements where it is false do not count
  Tensor lengths{};  ///< i64 [B] for losses [B, T, ...], each in 0..T: steps beyond a length do not count
};

/// Returns whether step t of row b lies within the row's length: lengths i64 [B] -> bool [B, steps]. Throws ShapeError
/// unless the lengths have rank 1 and lie in 0..steps, DtypeError unless they are i64.
Tensor length_mask(const Tensor& lengths, std::int64_t steps);

/// Reduces elementwise losses, f32 or f64 of any shape, as the losses of this library do; for your own losses. Throws
/// ShapeError for a weight, a mask or lengths that do not fit the losses, DtypeError for losses of other dtypes, a
/// weight of another dtype than theirs, a mask that is not bool and lengths that are not i64.
Tensor reduce_loss(const Tensor& losses, const LossOptions& options = {});

namespace detail {
/// Lists the operations of losses over alignments, with their gradients, or the losses that are composed of operations.
std::span<const Primitive* const> loss_operations();
std::span<const Primitive* const> loss_composites();
}  // namespace detail

}  // namespace ferrite::nn
