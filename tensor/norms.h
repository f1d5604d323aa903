#pragma once
/// Norms, distances and reductions besides those of tensor/ops.h. Semantics follow PyTorch's functions
/// (torch.linalg.vector_norm, torch.nn.functional.normalize, cosine_similarity, pairwise_distance, torch.cdist, nansum,
/// ...), including NaN, ties, and the subgradient 0 at points without a derivative. Empty axes mean all axes; `keepdim`
/// leaves extents of 1.
#include <limits>

#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Options of `norm`: its exponent, and the axes that it covers.
struct NormOptions {
  double p = 2;  ///< 0 counts the elements that are not 0, infinity is the largest |x|, -infinity the smallest; not NaN
  Shape axes{};  ///< the axes that one norm covers; empty: all
  bool keepdim = false;
};
/// Returns (sum of |x|^p)^(1 / p) over axes, f32 or f64. The gradient is 0 where the norm is 0 and for p = 0; for
/// infinite p, ties share it evenly. Where powers of a p above 0 would leave the range of the dtype, elements are
/// scaled first (PyTorch's norm of f32 numbers about 1e20 is infinite, that of numbers about 1e-25 is 0). Throws
/// DtypeError for integers, ValueError for p = NaN, ShapeError for an infinite or negative p of no elements.
Tensor norm(const Tensor& x, const NormOptions& options = {});

/// Returns the standard deviation, sqrt(var(x, axes, keepdim, correction)): torch.std, f32 or f64. The gradient is 0
/// where the result is 0. Errors as `var`.
Tensor stddev(const Tensor& x, const Shape& axes = {}, bool keepdim = false, double correction = 1);

/// Options of `normalize`: the exponent of the norm, its axis, and the least divisor.
struct NormalizeOptions {
  double p = 2;            ///< exponent of the norm
  std::int64_t axis = 1;   ///< the axis that one norm covers
  double epsilon = 1e-12;  ///< smaller norms count as this
};
/// Returns x divided by its norms along an axis: x / max(norm(x, p), epsilon), of x's shape. Throws as `norm`, and
/// ValueError for a negative epsilon.
Tensor normalize(const Tensor& x, const NormalizeOptions& options = {});

/// Returns the cosine similarity along an axis, which is dropped: a . b / (max(|a|, epsilon) max(|b|, epsilon)). Shapes
/// broadcast. Throws ShapeError for shapes that do not, DtypeError for dtypes that differ or are no floats, ValueError
/// for a negative epsilon.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis = 1, double epsilon = 1e-8);

/// Options of `pairwise_distance`: the norm of the differences.
struct PairwiseDistanceOptions {
  double p = 2;           ///< exponent of the norm
  double epsilon = 1e-6;  ///< added to every element of a - b
  bool keepdim = false;
};
/// Returns the distance of each row of a from the same row of b: the p-norm of a - b + epsilon along the last axis,
/// which is dropped. Shapes broadcast.
Tensor pairwise_distance(const Tensor& a, const Tensor& b, const PairwiseDistanceOptions& options = {});

/// Returns the distance of every row of a from every row of b: a [..., P, M], b [..., R, M] -> [..., P, R], by the
/// p-norm, p >= 0 or infinity; leading axes broadcast. Computed from differences, in memory of P R M elements, so that
/// close rows do not cancel. Throws ShapeError for ranks below 2 and unequal M, ValueError for p < 0.
Tensor cdist(const Tensor& a, const Tensor& b, double p = 2);

/// Sums the elements that are not NaN, 0 where there are none; for integers and bool it is `sum`.
Tensor nansum(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the mean of the elements that are not NaN, f32 or f64; NaN where there are none.
Tensor nanmean(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

/// Returns whether any element is not 0 (NaN counts as not 0): bool, false for no elements. Not differentiable, nor are
/// `all` and `count_nonzero`.
Tensor any(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns whether no element is 0; true for no elements.
Tensor all(const Tensor& x, const Shape& axes = {}, bool keepdim = false);
/// Returns the number of elements that are not 0, i64.
Tensor count_nonzero(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

/// Returns the smallest and the largest elements: two tensors, {amin, amax} with these axes and keepdim.
Tensors aminmax(const Tensor& x, const Shape& axes = {}, bool keepdim = false);

}  // namespace ferrite
