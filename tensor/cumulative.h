#pragma once
/// Functions along an axis whose result at each position depends on all positions before it: running sums, products and
/// extrema, linear recurrences; and differences and integrals of samples. Semantics follow PyTorch's functions of the
/// same name. Results have x's shape unless said otherwise. An axis may be negative; an axis that x does not have
/// throws ShapeError (a tensor of rank 0 has none).
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Returns the running sum along an axis: y[k] = x[0] + ... + x[k]; with `reverse` x[k] + ... + x[n-1]. bool and i32
/// give i64. Floats are added up in f64 and each element is rounded once; along the last axis in blocks of 8, otherwise
/// in order.
Tensor cumsum(const Tensor& x, std::int64_t axis, bool reverse = false);

/// Returns the running product along an axis: y[k] = x[0] x[1] ... x[k]; with `reverse` from the end. bool and i32 give
/// i64. The gradient is exact where elements are 0, to any order, and uses no division.
Tensor cumprod(const Tensor& x, std::int64_t axis, bool reverse = false);

/// Returns the recurrence y[0] = b[0], y[k] = a[k] y[k-1] + b[k] along an axis; a[0] is not read. With `reverse` from
/// the end: y[n-1] = b[n-1], y[k] = a[k] y[k+1] + b[k]. Used for discounted returns, exponential averages and diagonal
/// state-space models. a and b are floats of one dtype and one shape, without broadcasting; otherwise throws DtypeError
/// or ShapeError.
Tensor linear_recurrence(const Tensor& a, const Tensor& b, std::int64_t axis, bool reverse = false);

/// Returns the largest element up to each position along an axis, and its index; the last one of equal elements. A NaN
/// counts as largest and persists. Throws DtypeError for bool. The gradient goes to the element at the index.
ValuesAndIndices cummax(const Tensor& x, std::int64_t axis);
/// Returns the smallest element up to each position along an axis, and its index: of equal ones the last. A NaN counts
/// as smallest and persists.
ValuesAndIndices cummin(const Tensor& x, std::int64_t axis);

/// Returns y[k] = log(e^x[0] + ... + e^x[k]) along an axis, without overflow; -inf where all elements are -inf. Floats.
Tensor logcumsumexp(const Tensor& x, std::int64_t axis);

/// Options of `diff`: how often differences are taken, and what is joined to x before.
struct DiffOptions {
  std::int64_t n = 1;      ///< number of times that differences are taken; 0: x itself
  std::int64_t axis = -1;  ///< the axis of the differences
  Tensor prepend{};        ///< values placed before x along the axis, where defined
  Tensor append{};         ///< values placed after x along the axis, where defined
};
/// Returns the n-th difference along an axis: x[k+1] - x[k], n times; for bool x[k+1] != x[k]. The axis becomes n
/// elements shorter, or empty. Throws ValueError for a negative n.
Tensor diff(const Tensor& x, const DiffOptions& options = {});

/// Returns the integral of samples y along an axis by the trapezoidal rule, samples `dx` apart: sum of dx
/// (y[k] + y[k+1]) / 2. The axis is dropped; fewer than two samples give 0. Floats.
Tensor trapezoid(const Tensor& y, double dx = 1, std::int64_t axis = -1);
/// Returns the integral of samples y at positions x along an axis, which is dropped, by the trapezoidal rule: sum of
/// (x[k+1] - x[k]) (y[k] + y[k+1]) / 2. x has y's dtype and y's shape, or has rank 1 and the extent of the axis;
/// otherwise throws DtypeError or ShapeError.
Tensor trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);
/// Returns the integrals by the trapezoidal rule from the first sample to each later one, samples `dx` apart; the axis
/// becomes one element shorter.
Tensor cumulative_trapezoid(const Tensor& y, double dx = 1, std::int64_t axis = -1);
/// Returns the integrals by the trapezoidal rule from the first sample to each later one, with samples at positions x;
/// the axis becomes one element shorter. x and errors are those of `trapezoid`.
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, std::int64_t axis = -1);

}  // namespace ferrite
