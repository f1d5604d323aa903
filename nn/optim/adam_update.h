#pragma once
/// One update by Adam as a function.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// What stays the same from one update by Adam to the next.
struct AdamConstants {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< added to the gradient as weight_decay w, or
  bool decoupled = false;   ///< taken from the weights as rate weight_decay w, which is AdamW
};
/// One update by Adam (arXiv 1412.6980, algorithm 1; decoupled: arXiv 1711.05101) as a single sweep over memory
/// -> {w', m', v'}. w, its gradient g and its moments m, v: f32 or f64, all of one shape and dtype; rate, correction1
/// = 1 - beta1^t and correction2 = 1 - beta2^t: rank 0, f32 or f64.
///
///   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
///   w' = w - rate / correction1 * (m' / (sqrt(v') / sqrt(correction2) + epsilon))
///
/// Values are those of the same written in operations, to the bit. It is the operation `rule_update`. Throws ShapeError
/// and DtypeError where w, g, m and v differ in shape and dtype, or are no floats, or where the numbers are no floats
/// of rank 0.
Tensors adam_update(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& rate,
                    const Tensor& correction1, const Tensor& correction2, const AdamConstants& constants = {});

namespace detail {

/// The operations of optimisers: `adam_begin` and `rule_update`.
std::span<const Primitive* const> optimizer_operations();

}  // namespace detail
}  // namespace ferrite::nn
