#pragma once
/// Activation functions besides those of tensor/ops.h (relu, gelu, silu, softplus, softsign, sigmoid, tanh). Each
/// matches the function of the same name in torch.nn.functional, including defaults, values at NaN and gradients at
/// kinks; all take f32 and f64 of any shape and throw DtypeError for other dtypes. Values and gradients are each
/// computed in one sweep over the elements, with the bits of the composition that an exported program contains.
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Returns x where x > 0, else slope x. Gradient `slope` at 0 (Maas et al. 2013).
Tensor leaky_relu(const Tensor& x, double slope = 0.01);
/// Returns x where x > 0, else alpha (e^x - 1) (arXiv 1511.07289).
Tensor elu(const Tensor& x, double alpha = 1);
/// Returns scale elu(x, alpha), alpha = 1.6732632423543772, scale = 1.0507009873554805 (arXiv 1706.02515).
Tensor selu(const Tensor& x);
/// Returns x where x > 0, else alpha (e^(x / alpha) - 1) (arXiv 1704.07483). Throws ValueError for alpha 0.
Tensor celu(const Tensor& x, double alpha = 1);
/// Returns x where x > 0, else weight x (arXiv 1502.01852). weight has one element, or one for each channel: axis 1 of
/// x (axis 0 where x has rank 1). Throws ShapeError for another number of weights, DtypeError where the dtypes differ.
Tensor prelu(const Tensor& x, const Tensor& weight);
/// Returns leaky_relu with the mean of the bounds as slope: what torch's rrelu computes in evaluation
/// (arXiv 1505.00853). Throws ValueError for bounds that are not finite or in the wrong order.
Tensor rrelu(const Tensor& x, double lower = 1.0 / 8, double upper = 1.0 / 3);
/// Returns min(max(x, low), high). The gradient is 1 between the bounds, 0 at them and outside (`clamp`: 1 at them).
/// Throws ValueError for low > high.
Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
/// Returns min(max(x, 0), 6). The gradient is 0 at both ends.
Tensor relu6(const Tensor& x);
/// Returns relu6(x + 3) / 6.
Tensor hardsigmoid(const Tensor& x);
/// Returns x relu6(x + 3) / 6 (arXiv 1905.02244).
Tensor hardswish(const Tensor& x);
/// Returns x tanh(softplus(x)) (arXiv 1908.08681).
Tensor mish(const Tensor& x);
/// Returns x - lambda above lambda, x + lambda below -lambda, else 0. Throws ValueError for lambda < 0.
Tensor softshrink(const Tensor& x, double lambda = 0.5);
/// Returns 0 where |x| <= lambda, else x. Throws ValueError for a lambda that is NaN.
Tensor hardshrink(const Tensor& x, double lambda = 0.5);
/// Returns x - tanh(x).
Tensor tanhshrink(const Tensor& x);
/// Returns x where x > bound, else `value`; a NaN stays NaN. The gradient is 0 where `value` is taken.
Tensor threshold(const Tensor& x, double bound, double value);
/// Returns a sigmoid(b), where a and b are the first and the second half of x along an axis, whose extent is halved
/// (arXiv 1612.08083). Throws ShapeError for an odd extent.
Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// Returns softmax(-x) along an axis.
Tensor softmin(const Tensor& x, std::int64_t axis = -1);

}  // namespace ferrite
