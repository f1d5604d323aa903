#pragma once
/// Sorting, choosing by rank, searching and counting. Semantics follow PyTorch's functions of the same name. In every
/// order a NaN is larger than all numbers, 0 and -0 are equal, and of equal elements the first comes first: results are
/// the same in every run, on every machine. An axis may be negative; ShapeError for one that x does not have (a tensor
/// of rank 0 has none). Gradients go to the elements chosen.
#include "ferrite/tensor/ops.h"

namespace ferrite {

/// x with the elements along an axis in ascending order (NaN last), or in descending order (NaN first), and where each
/// came from. Stable.
ValuesAndIndices sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);
/// The indices of `sort`: gather(x, axis, argsort(x, axis)) is sorted.
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

/// How `topk` chooses.
struct TopkOptions {
  std::int64_t axis = -1;
  bool largest = true;  ///< or the smallest
  bool sorted = true;   ///< the best first; otherwise in the order of their positions
};
/// The k largest (or smallest) elements along an axis, which gets the extent k. Of equal elements the first are chosen.
/// ValueError for k outside 0..extent.
ValuesAndIndices topk(const Tensor& x, std::int64_t k, const TopkOptions& options = {});

/// The k-th smallest element along an axis, k from 1; the axis is dropped, or has the extent 1 with `keepdim`.
/// ValueError for k outside 1..extent.
ValuesAndIndices kthvalue(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool keepdim = false);

/// The median along an axis, of an even number of elements the lower one; NaN where there is one. ShapeError for no
/// elements.
ValuesAndIndices median(const Tensor& x, std::int64_t axis, bool keepdim = false);
/// The median of all elements, rank 0; equal ones share the gradient evenly.
Tensor median(const Tensor& x);

/// What a quantile is where it falls between two elements a <= b, at the share t of the way.
enum class QuantileInterpolation : std::uint8_t {
  linear,    ///< a + t (b - a)
  lower,     ///< a
  higher,    ///< b
  nearest,   ///< the one that is nearer; of two the one of even rank
  midpoint,  ///< (a + b) / 2
};
/// How `quantile` takes x.
struct QuantileOptions {
  std::optional<std::int64_t> axis{};  ///< none: all elements, flattened
  bool keepdim = false;
  QuantileInterpolation interpolation = QuantileInterpolation::linear;
};
/// The q-th quantiles along an axis, q in [0, 1] (ValueError): at the rank q (n - 1) of the sorted elements. NaN where
/// there is one. Beside an infinite neighbour the quantile is that neighbour, between -infinity and infinity NaN
/// (PyTorch: NaN for all of them). q of rank 0 or 1 and of x's dtype (floats); with rank 1 its axis comes first in the
/// result. ShapeError for no elements. Differentiable in x and, through `linear`, in q. With a tensor q, one outside
/// [0, 1] throws as part of the program.
Tensor quantile(const Tensor& x, const Tensor& q, const QuantileOptions& options = {});
Tensor quantile(const Tensor& x, double q, const QuantileOptions& options = {});

/// How `searchsorted` and `bucketize` take equal values.
struct SearchOptions {
  bool right = false;  ///< the position behind equal elements instead of before them
};
/// Where each value would be inserted into a sorted row, i64 in 0..n: the first position whose element is >= value
/// (> value with `right`). sorted [n] and values of any shape, or sorted [..., n] and values [..., m] with equal
/// leading axes (ShapeError). Equal dtypes (DtypeError). That a row is sorted is not checked. A NaN goes to the end.
/// Not differentiable.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, const SearchOptions& options = {});
/// The bucket between sorted boundaries [n] that each value falls into, 0..n: searchsorted(boundaries, values).
Tensor bucketize(const Tensor& values, const Tensor& boundaries, const SearchOptions& options = {});

/// How many elements fall into each of `bins` intervals of equal width from low to high, the last one closed; others
/// and NaN are left out. low = high = 0 takes the smallest and the largest element. Result [bins] of x's dtype
/// (floats). ValueError for bins < 1 and for low > high. Not differentiable.
Tensor histc(const Tensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

/// How `bincount` counts.
struct BincountOptions {
  Tensor weights{};                    ///< added up in place of ones, where defined: of x's shape
  std::int64_t minlength = 0;          ///< the least extent of the result
  std::optional<std::int64_t> size{};  ///< the extent of the result, where values must not decide it
};
/// How often each value 0, 1, ... occurs in x (i64 [n]), or the sum of its weights: differentiable in these. The result
/// has max(largest value + 1, minlength) elements, so tracing throws TraceError unless `size` is given; then a value
/// from `size` on throws as part of the program, as a negative one does in any case.
Tensor bincount(const Tensor& x, const BincountOptions& options = {});

/// The distinct elements of a tensor.
struct Unique {
  Tensor values;   ///< [m], differentiable: each takes its gradient to the first element equal to it
  Tensor inverse;  ///< of x's shape: values[inverse] = x
  Tensor counts;   ///< i64 [m]
};
/// The distinct elements in ascending order. Each NaN is distinct. m depends on the values: TraceError while tracing.
Unique unique(const Tensor& x);
/// The same of runs of equal neighbours, in their order in the flattened x.
Unique unique_consecutive(const Tensor& x);

}  // namespace ferrite
