#pragma once
/// Convolutions, their adjoints and the gradients of their weights on row-major tensors of floats.
#include "ferrite/tensor/ops/detail/convolution_plan.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// y [N, O, small] = w [O, I, taps] over x [N, groups I, large], plus bias [O] unless it is null.
void run_convolution(const Tensor& x, const Tensor& w, const Tensor* bias, Tensor& y, const WindowGeometry& g,
                     std::int64_t groups);
/// x [N, groups I, large] from y [N, O, small], plus bias [groups I] unless it is null.
void run_transposed(const Tensor& y, const Tensor& w, const Tensor* bias, Tensor& x, const WindowGeometry& g,
                    std::int64_t groups);
/// w [O, I, taps] = sums over N and all positions of y times what each tap reads of x.
void run_weight_gradient(const Tensor& x, const Tensor& y, Tensor& w, const WindowGeometry& g, std::int64_t groups);

}  // namespace ferrite::detail
