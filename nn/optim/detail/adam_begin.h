#pragma once
/// What Adam's updates begin with, as an operation.
#include "ferrite/tensor/primitive.h"

namespace ferrite::nn::detail {

/// The constants of `adam_begin`.
struct AdamBetas {
  double beta1 = 0, beta2 = 0;
  static constexpr auto fields = attr_list(attr("beta1", &AdamBetas::beta1), attr("beta2", &AdamBetas::beta2));
};

/// Updates done so far, i64 [parameters], and which of the parameters another one updates (1 or 0; undefined: all)
/// -> {t = steps + updated, 1 - beta1^t, 1 - beta2^t}: `adam_begin`.
Tensors begin_adam(const Tensor& steps, const Tensor& updated, const Attrs& betas);

}  // namespace ferrite::nn::detail
