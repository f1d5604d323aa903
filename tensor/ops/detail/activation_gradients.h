#pragma once
/// Gradients of activation functions of x from the cotangent g of their result, each as one operation: a gradient
/// composed of several operations reads and writes memory once for each.
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

/// Returns x where it is not positive, else 0: exponentials of positive x would be multiplied by 0.
inline Tensor not_positive(const Tensor& x) { return where(le(x, 0), x, 0.0); }

/// Returns the cotangent of x from that of y = relu(x).
Tensor relu_grad(const Tensor& g, const Tensor& y);
Tensor silu_grad(const Tensor& g, const Tensor& x);
Tensor log_sigmoid_grad(const Tensor& g, const Tensor& x);
Tensor softplus_grad(const Tensor& g, const Tensor& x);
Tensor softsign_grad(const Tensor& g, const Tensor& x);
Tensor gelu_grad(const Tensor& g, const Tensor& x);
Tensor gelu_tanh_grad(const Tensor& g, const Tensor& x);
Tensor selu_grad(const Tensor& g, const Tensor& x);
Tensor hardswish_grad(const Tensor& g, const Tensor& x);
Tensor mish_grad(const Tensor& g, const Tensor& x);
Tensor tanhshrink_grad(const Tensor& g, const Tensor& x);
Tensor leaky_relu_grad(const Tensor& g, const Tensor& x, const Operand& slope);
Tensor elu_grad(const Tensor& g, const Tensor& x, const Operand& alpha);
Tensor celu_grad(const Tensor& g, const Tensor& x, const Operand& alpha);
/// Returns g where x > bound or x is NaN, else 0; pass_below where x < bound or x is NaN.
Tensor pass_above(const Tensor& g, const Tensor& x, const Operand& bound);
Tensor pass_below(const Tensor& g, const Tensor& x, const Operand& bound);
/// Returns g where x lies outside -lambda..lambda or is NaN, else 0.
Tensor shrink_grad(const Tensor& g, const Tensor& x, const Operand& lambda);

}  // namespace ferrite::detail
