#pragma once
/// Functions along an axis whose result at each position depends on all positions before it: running sums, products and
/// extrema, linear recurrences; and differences and integrals of samples. Semantics follow PyTorch's functions of the
/// same name. Results have x's shape unless said otherwise. An axis may be negative; ShapeError for one that x does not
/// have (a tensor of rank 0 has none).
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// y[k] = x[0] + ... + x[k] along an axis; with `reverse` x[k] + ... + x[n-1]. bool and i32 give i64. Floats are added
/// up in f64 and rounded once for each element; along the last axis in blocks of 8, otherwise in order.
Tensor cumsum(const Tensor& x, std::int64_t axis, bool reverse = false);

/// y[k] = x[0] x[1] ... x[k] along an axis; with `reverse` from the end. bool and i32 give i64. The gradient is exact
/// where elements are 0, to any order, and takes no division.
Tensor cumprod(const Tensor& x, std::int64_t axis, bool reverse = false);

/// y[0] = b[0], y[k] = a[k] y[k-1] + b[k] along an axis; a[0] is not read. With `reverse` from the end: y[n-1] =
/// b[n-1], y[k] = a[k] y[k+1] + b[k]. Discounted returns, exponential averages, diagonal state-space models. Floats of
/// one dtype and one shape (DtypeError, ShapeError): no broadcasting.
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis, bool reverse = false);

/// The largest element up to each position along an axis, and where it is; of equal ones the last. A NaN counts as
/// largest and stays. Numbers; DtypeError for bool. The gradient goes to the element at the index.
ValuesAndIndices cummax(const Tensor& x, std::int64_t axis);
/// The smallest element likewise; a NaN counts as smallest and stays.
ValuesAndIndices cummin(const Tensor& x, std::int64_t axis);

/// y[k] = log(e^x[0] + ... + e^x[k]) along an axis, without overflow; -inf for only -inf elements. Floats.
Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

/// What `diff` may take beside x.
struct DiffOptions {
  std::int64_t n = 1;      ///< how often differences are taken; 0: x itself
  std::int64_t axis = -1;  ///< along which
  Tensor prepend{};        ///< values before x along the axis, where defined
  Tensor append{};         ///< values behind x along the axis, where defined
};
/// The n-th difference along an axis: x[k+1] - x[k], n times; of bool x[k+1] != x[k]. The axis gets n elements shorter,
/// or empty. ValueError for a negative n.
Tensor diff(const Tensor& x, const DiffOptions& options = {});

/// The integral of samples y along an axis by the trapezoidal rule, samples `dx` apart: sum of dx (y[k] + y[k+1]) / 2.
/// The axis is dropped; 0 for fewer than two samples. Floats.
Tensor trapezoid(const Tensor& y, double dx = 1, std::int64_t axis = -1);
/// The same at positions x: sum of (x[k+1] - x[k]) (y[k] + y[k+1]) / 2. x has y's shape, or is rank 1 with the extent
/// of the axis; ShapeError otherwise.
Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);
/// Integrals from the first sample to each later one: the axis is one element shorter.
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, std::int64_t axis = -1);
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);

}  // namespace ferrite
