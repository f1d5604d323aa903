#pragma once
/// The three operations of a convolution, each of which is a gradient of the others.
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::detail {

/// x [N, C, large...], w [O, C / groups, kernel...], bias [O] or none -> [N, O, size...].
Tensor convolution(const Tensor& x, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs);
/// y [N, O, small...], w [O, C / groups, kernel...], bias [C] or none -> [N, C, size...].
Tensor convolution_transposed(const Tensor& y, const Tensor& w, const Tensor& bias, const ConvolutionAttrs& attrs);
/// x [N, C, large...], y [N, O, small...] -> [O, C / groups, size...].
Tensor convolution_weights(const Tensor& x, const Tensor& y, const ConvolutionAttrs& attrs);

}  // namespace ferrite::detail
