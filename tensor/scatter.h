#pragma once
/// Reading and replacing elements at positions given by a tensor of integers or a mask. Tensors are immutable: what
/// PyTorch writes in place is a new tensor here. Indices are i64 or i32; negative ones count from the end, and one
/// outside [-n, n) throws ShapeError, also in compiled programs. Axes may be negative; an axis that x does not have
/// throws ShapeError. Where an index is repeated, elements are taken in row-major order: results are the same in every
/// run.
#include <optional>
#include <span>

#include "ferrite/tensor/ops.h"

namespace ferrite {

// ---- at indices along an axis ------------------------------------------------------------------------------

/// Returns the elements of x at an index along an axis: gather whose index and x broadcast on the other axes, as
/// NumPy's take_along_axis and torch.take_along_dim.
Tensor take_along_axis(const Tensor& x, const Tensor& index, std::int64_t axis);
/// Returns the elements that the flattened x has at the positions `index`, in the shape of `index`.
Tensor take(const Tensor& x, const Tensor& index);

/// Returns x with the elements of `source` written at `index` along an axis: out[index[i][j]][j] = source[i][j] for
/// axis 0. index has x's rank, and extents not above x's on the other axes; source is at least as large as the index,
/// of x's dtype. Of elements for the same place the last one stays, and only it gets a gradient.
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
               const IndexOptions& options = {});
/// Returns x with one value written at the positions `index` along an axis, placed as above.
Tensor scatter(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value, const IndexOptions& options = {});

/// The operation by which `scatter_reduce` combines elements that meet in one place.
enum class ScatterReduction : std::uint8_t {
  sum,
  prod,
  mean,  ///< floats only
  amax,  ///< NaN if there is one; equal ones share the gradient evenly
  amin,
};
/// Returns x with the elements of `source` combined with those at `index` along an axis, placed as by `scatter`:
/// elements that meet are added, multiplied, averaged or compared. With include_self = false, x's own element does not
/// count where an index points to it. As torch.scatter_reduce; numbers of one dtype. The gradient of prod is exact to
/// any order, also where elements are 0.
Tensor scatter_reduce(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source,
                      ScatterReduction reduction, bool include_self = true);

// ---- whole slices at a rank-1 index ------------------------------------------------------------------------

/// Returns x with alpha times slice j of `source` added to x's slice index[j] along an axis, for every j: the adjoint
/// of index_select. source has x's shape except along the axis, where it has the extent of the index.
Tensor index_add(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source, double alpha = 1);
/// Returns x with its slice index[j] along an axis replaced by slice j of `source`, for every j; of slices for the same
/// place the last one stays.
Tensor index_copy(const Tensor& x, std::int64_t axis, const Tensor& index, const Tensor& source);
/// Returns x with one value in all elements of its slices index[j] along an axis.
Tensor index_fill(const Tensor& x, std::int64_t axis, const Tensor& index, Scalar value);

// ---- at several indices ------------------------------------------------------------------------------------

/// Returns a copy of x with x[i, j, ...] = values, or += values with `accumulate`: i, j, ... are `indices`, indices of
/// the first axes, which broadcast together; values broadcast to their shape followed by x's other axes.
Tensor index_put(const Tensor& x, std::span<const Tensor> indices, const Tensor& values, bool accumulate = false);
Tensor index_put(const Tensor& x, std::initializer_list<Tensor> indices, const Tensor& values, bool accumulate = false);

/// Returns the elements x[i, j, ...] that index_put would replace: indices of neighbouring axes starting at `axis`,
/// which broadcast together; in place of these axes the result has the shape that they broadcast to. `at` takes single
/// elements and ranges (tensor/index.h).
Tensor index_at(const Tensor& x, std::span<const Tensor> indices, std::int64_t axis = 0);
Tensor index_at(const Tensor& x, std::initializer_list<Tensor> indices, std::int64_t axis = 0);

// ---- by masks ----------------------------------------------------------------------------------------------

/// Options of `nonzero`: a fixed number of rows [size, rank], for programs in which values must not decide shapes.
struct NonzeroOptions {
  std::optional<std::int64_t> size{};  ///< number of rows: the first ones, then rows of `fill` where there are fewer
  std::int64_t fill = -1;
};
/// Returns the indices of the elements that are not 0 (NaN counts as not 0), in row-major order: i64 [m, rank]. m
/// depends on the values: TraceError while tracing, unless `size` gives it (torch.nonzero_static).
Tensor nonzero(const Tensor& x, const NonzeroOptions& options = {});

/// Options of `masked_select`: a fixed number of elements, for programs in which values must not decide shapes.
struct MaskedSelectOptions {
  std::optional<std::int64_t> size{};  ///< number of elements: the first ones, then `fill` where there are fewer
  Scalar fill = 0;
};
/// Returns the elements where the bool mask holds, in row-major order [m]; x and mask broadcast. m depends on the
/// values: TraceError while tracing, unless `size` fixes it (fewer are filled up with `fill`, more are cut off).
Tensor masked_select(const Tensor& x, const Tensor& mask, const MaskedSelectOptions& options = {});
/// Returns x with its elements where the bool mask holds replaced by consecutive elements of `source`, in row-major
/// order. The mask broadcasts to x; source has x's dtype. Throws ShapeError, as part of the program, where it has too
/// few elements.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source);

}  // namespace ferrite
