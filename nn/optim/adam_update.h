#pragma once
/// A single update by Adam as a function.
#include <span>

#include "ferrite/tensor/primitive.h"

namespace ferrite::nn {

/// Constants of `adam_update`: the decays of its two moments, epsilon and the weight decay.
struct AdamConstants {
  double beta1 = 0.9;       ///< decay of m, the mean of gradients, in [0, 1)
  double beta2 = 0.999;     ///< decay of v, the mean of squared gradients, in [0, 1)
  double epsilon = 1e-8;    ///< added to the root of v, the divisor
  double weight_decay = 0;  ///< added to the gradient as weight_decay w
  bool decoupled = false;   ///< subtracts rate weight_decay w from the weights instead, as in AdamW
};
/// Returns {w', m', v'} after one update by Adam (arXiv 1412.6980, algorithm 1; decoupled: arXiv 1711.05101), in a
/// single sweep over memory. w, its gradient g and its moments m and v are f32 or f64, all of one shape and dtype;
/// rate, correction1 = 1 - beta1^t and correction2 = 1 - beta2^t are f32 or f64 of rank 0.
///
///   m' = beta1 m + (1 - beta1) g;  v' = beta2 v + (1 - beta2) g^2
///   w' = w - rate / correction1 * (m' / (sqrt(v') / sqrt(correction2) + epsilon))
///
/// The values are bit for bit those of the formula written in operations. It is the operation `rule_update`. Throws
/// ShapeError and DtypeError if w, g, m and v differ in shape or dtype or are not floats, or if the numbers are not
/// floats of rank 0.
Tensors adam_update(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v, const Tensor& rate,
                    const Tensor& correction1, const Tensor& correction2, const AdamConstants& constants = {});

namespace detail {

/// Lists the operations of optimisers: `adam_begin` and `rule_update`.
std::span<const Primitive* const> optimizer_operations();

}  // namespace detail
}  // namespace ferrite::nn
