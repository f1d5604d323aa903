#pragma once
/// Shared parts of layer norm, softmax and their gradients.
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

struct LayerNormAttrs {
  int axes = 1;
  double epsilon = 1e-5;
  static constexpr auto fields =
      attr_list(attr("axes", &LayerNormAttrs::axes), attr("epsilon", &LayerNormAttrs::epsilon));
};

/// Returns the numbers of the last `axes` of `rank` axes.
inline Shape last_axes(int rank, int axes) {
  Shape over;
  for (int i = rank - axes; i < rank; ++i) over.push_back(i);
  return over;
}

/// Returns the cotangent of x for y = softmax(x, axis): y (g - sum of g y).
Tensor softmax_grad(const Tensor& g, const Tensor& y, int axis);
/// Returns the cotangent of x for y = log_softmax(x, axis): g - e^y sum of g; g where that sum is 0, even where y is
/// NaN.
Tensor log_softmax_grad(const Tensor& g, const Tensor& y, int axis);
/// Returns the cotangent of x for y = layer_norm(x, axes, epsilon): (g - mean of g - y mean of g y) /
/// sqrt(variance + epsilon).
Tensor layer_norm_grad(const Tensor& g, const Tensor& x, int axes, double epsilon);

}  // namespace ferrite::detail
