#pragma once
/// What a cotangent g becomes behind an activation function of x, each one operation: a gradient that is composed of
/// several reads and writes memory as often.
#include "ferrite/tensor/ops.h"

namespace ferrite::detail {

/// x where it is not positive, else 0: exponentials beyond would meet a factor 0.
inline Tensor not_positive(const Tensor& x) { return where(le(x, 0), x, 0.0); }

/// Behind y = relu(x).
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
/// g where x > bound or x is NaN, else 0; and where x < bound.
Tensor pass_above(const Tensor& g, const Tensor& x, const Operand& bound);
Tensor pass_below(const Tensor& g, const Tensor& x, const Operand& bound);
/// g where x lies outside of -lambda..lambda or is NaN, else 0.
Tensor shrink_grad(const Tensor& g, const Tensor& x, const Operand& lambda);

}  // namespace ferrite::detail
