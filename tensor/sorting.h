#pragma once
/// Sorting, choosing by rank, searching and counting. Semantics follow PyTorch's functions of the same name. In every
/// order a NaN is larger than all numbers, 0 and -0 are equal, and of equal elements the first comes first: results are
/// the same in every run, on every machine. An axis may be negative; an axis that x does not have throws ShapeError (a
/// tensor of rank 0 has none). Gradients go to the elements chosen.
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Returns x sorted along an axis in ascending order (NaN last), or in descending order (NaN first), and the index that
/// each element came from. Stable.
ValuesAndIndices sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// Returns the indices of `sort`: gather(x, axis, argsort(x, axis)) is sorted.
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

/// Options of `topk`: the axis, which end of the order is taken, and the order of the results.
struct TopkOptions {
  std::int64_t axis = -1;
  bool largest = true;  ///< takes the largest elements; false: the smallest
  bool sorted = true;   ///< results begin with the largest (or smallest); false: they are in the order of x
};
/// Returns the k largest (or smallest) elements along an axis, which gets the extent k, and their indices. Of equal
/// elements the first are chosen. Throws ValueError for k outside 0..extent.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, const TopkOptions& options = {});

/// Returns the k-th smallest element along an axis, k from 1, and its index; the axis is dropped, or has the extent 1
/// with `keepdim`. Throws ValueError for k outside 1..extent.
ValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keepdim = false);

/// Returns the median along an axis and its index; the lower of the two for an even number of elements; NaN where there
/// is one. Throws ShapeError for no elements.
ValuesAndIndices median(const Tensor& x, std::int64_t axis, bool keepdim = false);
/// Returns the median of all elements, rank 0; equal ones share the gradient evenly.
Tensor median(const Tensor& x);

/// The rule for a quantile that lies between two neighbouring elements a <= b, at the fraction t of the way.
enum class QuantileInterpolation : std::uint8_t {
  linear,    ///< a + t (b - a)
  lower,     ///< a, the element below
  higher,    ///< b, the element above
  nearest,   ///< the nearer one; at equal distance the one of even rank
  midpoint,  ///< (a + b) / 2
};
/// Options of `quantile`: the axis, and the rule between two elements.
struct QuantileOptions {
  std::optional<std::int64_t> axis{};  ///< none: all elements, flattened
  bool keepdim = false;
  QuantileInterpolation interpolation = QuantileInterpolation::linear;
};
/// Returns the q-th quantiles along an axis, q in [0, 1]: the values at rank q (n - 1) of the sorted elements. NaN
/// where there is one. Next to an infinite neighbour the quantile is that neighbour, between -infinity and infinity NaN
/// (PyTorch: NaN in all these cases). q has rank 0 or 1 and x's dtype (floats); with rank 1 its axis comes first in the
/// result. Differentiable in x and, with `linear`, in q. Throws ShapeError for no elements, ValueError for a q outside
/// [0, 1]; a tensor q outside it throws as part of the program.
Tensor quantile(const Tensor& x, const Tensor& q, const QuantileOptions& options = {});
Tensor quantile(const Tensor& x, double q, const QuantileOptions& options = {});

/// Options of `searchsorted` and `bucketize`: the side of equal elements.
struct SearchOptions {
  bool right = false;  ///< whether positions are after equal elements; false: before them
};
/// Returns the position where each value would be inserted into a sorted row, i64 in 0..n: the first one whose element
/// is >= value (> value with `right`). sorted [n] and values of any shape, or sorted [..., n] and values [..., m] with
/// equal leading axes (ShapeError). Dtypes must be equal (DtypeError). That a row is sorted is not checked. A NaN goes
/// to the end. Not differentiable.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, const SearchOptions& options = {});
/// Returns the number of the bucket between sorted boundaries [n] that each value falls into, i64 in 0..n:
/// searchsorted(boundaries, values, options).
Tensor bucketize(const Tensor& values, const Tensor& boundaries, const SearchOptions& options = {});

/// Counts the elements that fall into each of `bins` intervals of equal width from low to high, the last one closed;
/// other elements and NaN are left out. low = high = 0 takes the smallest and the largest element. The result [bins]
/// has x's dtype (floats). Throws ValueError for bins < 1 and for low > high. Not differentiable.
Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

/// Options of `bincount`: what is added up, and the extent of the result.
struct BincountOptions {
  Tensor weights{};                    ///< added up instead of ones, where defined: one weight for each element of x
  std::int64_t minlength = 0;          ///< the smallest extent of the result
  std::optional<std::int64_t> size{};  ///< a fixed extent of the result, where values must not decide it
};
/// Counts how often each value 0, 1, ... occurs in x (i64 [n]), or sums its weights, in which the result is
/// differentiable. The result has max(largest value + 1, minlength) elements, so tracing throws TraceError unless
/// `size` is given; then a value from `size` on throws as part of the program, as a negative one does in any case.
Tensor bincount(const Tensor& x, const BincountOptions& options = {});

/// The result of `unique`: the distinct elements of x. Of `unique_consecutive`: one element for each run of equal ones.
struct Unique {
  Tensor values;   ///< [m], differentiable: each gradient goes to the first element equal to the value
  Tensor inverse;  ///< i64, of x's shape: x is values[inverse]
  Tensor counts;   ///< i64 [m]: how often each value occurs, or the lengths of the runs
};
/// Returns the m distinct elements of x in ascending order. Each NaN is distinct. m depends on the values: TraceError
/// while tracing.
Unique unique(const Tensor& x);
/// Returns the first element of each run of equal elements, in the order of the flattened x. Throws as `unique`.
Unique unique_consecutive(const Tensor& x);

}  // namespace ferrite
