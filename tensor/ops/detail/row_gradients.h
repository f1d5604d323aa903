#pragma once
/// What a cotangent g becomes behind functions along rows: composites with kernels of their own.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Behind y = softmax(x, axis): y (g - sum of g y).
Tensor softmax_grad(const Tensor& g, const Tensor& y, int axis);
/// Behind y = log_softmax(x, axis): g - e^y sum of g, g where that sum is 0, even where y is NaN.
Tensor log_softmax_grad(const Tensor& g, const Tensor& y, int axis);
/// Behind y = layer_norm(x, axes, epsilon): (g - mean of g - y mean of g y) / sqrt(variance + epsilon).
Tensor layer_norm_grad(const Tensor& g, const Tensor& x, int axes, double epsilon);

}  // namespace ferrite::detail
