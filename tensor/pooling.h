#pragma once
/// Pooling: maxima, means and norms of windows over one, two and three axes.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

// All functions take x [N, C, ...] or [C, ...] of floats with as many spatial axes as their name says, and return it
// with other extents on these axes. Shapes of options hold one number for each axis, or one for all; an empty shape is
// the default. A window may begin `padding` elements before the first one and end as many after the last; there are
// (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1 of them, rounded down; with `ceil_mode` rounded up, as far
// as windows begin before the end. All functions throw DtypeError for other dtypes than floats, ShapeError for ranks
// that do not fit and where no window fits, ValueError for kernels, strides and dilations below 1 and for padding that
// is negative or more than half of what a kernel covers.

/// Options of `max_pool1d`, 2d and 3d: where the windows lie. Shapes hold one number for each spatial axis, or one for
/// all; an empty shape is the default.
struct MaxPoolOptions {
  Shape stride{};          ///< default: the kernel's extents
  Shape padding{};         ///< default 0 on every axis
  Shape dilation{};        ///< default 1 on every axis
  bool ceil_mode = false;  ///< whether the number of windows is rounded up: the last one may reach beyond the end
};
/// The largest element of every window, and its position (i64) in x: a row-major number over the spatial axes alone.
struct MaxPooled {
  Tensor values, indices;
};

/// Returns the largest element of every window, as torch.nn.functional.max_pool1d: NaN where there is one; the gradient
/// goes to the first of equal elements. Padding counts as -inf.
Tensor max_pool1d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
Tensor max_pool2d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
Tensor max_pool3d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
/// Returns the largest element of every window with its position in x, as torch's return_indices.
MaxPooled max_pool1d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
MaxPooled max_pool2d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
MaxPooled max_pool3d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});

/// Options of `max_unpool1d`, 2d and 3d: those of the pooling that is undone.
struct MaxUnpoolOptions {
  Shape stride{};       ///< default: the kernel's extents
  Shape padding{};      ///< default 0 on every axis
  Shape output_size{};  ///< extents of the spatial axes; default (n - 1) stride - 2 padding + kernel
};
/// Returns a tensor of zeros with the elements of x at the positions `indices` that max pooling gave, as
/// torch.nn.functional.max_unpool1d; of elements for one position the last one stays. Throws ShapeError for indices of
/// another shape than x's, and while running for an index outside the result.
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});

/// Options of `avg_pool1d`, 2d and 3d: where the windows lie, and what their sums are divided by.
struct AvgPoolOptions {
  Shape stride{};                     ///< default: the kernel's extents
  Shape padding{};                    ///< default 0 on every axis
  bool ceil_mode = false;             ///< as in MaxPoolOptions
  bool count_include_pad = true;      ///< whether the divisor counts padding, which is zeros
  std::int64_t divisor_override = 0;  ///< divisor of all sums; 0: the number of elements of the window
};
/// Returns the mean of every window, as torch.nn.functional.avg_pool1d. Sums are taken row by row. Also throws
/// ValueError for a negative divisor_override.
Tensor avg_pool1d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});
Tensor avg_pool3d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});

/// Options of `lp_pool1d`, 2d and 3d: where the windows lie.
struct LpPoolOptions {
  Shape stride{};          ///< default: the kernel's extents
  bool ceil_mode = false;  ///< as in MaxPoolOptions
};
/// Returns (sum of x^norm)^(1 / norm), not of |x|, over every window, as torch.nn.functional.lp_pool1d, which scales a
/// window that reaches beyond the end to the size of a whole one: its mean times the elements of a whole window. Throws
/// ValueError for a norm that is 0 or not finite.
Tensor lp_pool1d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});
Tensor lp_pool2d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});
Tensor lp_pool3d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});

/// Returns the means of `size` windows on each spatial axis, [floor(i n / size), ceil((i + 1) n / size)) of n elements,
/// as torch.nn.functional.adaptive_avg_pool1d. `size` is one number for all axes or one for each; -1 keeps an extent.
Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& size);
Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& size);
Tensor adaptive_avg_pool3d(const Tensor& x, const Shape& size);
/// Returns the largest elements of the windows of adaptive_avg_pool1d, 2d and 3d.
Tensor adaptive_max_pool1d(const Tensor& x, const Shape& size);
Tensor adaptive_max_pool2d(const Tensor& x, const Shape& size);
Tensor adaptive_max_pool3d(const Tensor& x, const Shape& size);
/// Returns these elements with their positions in x.
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& size);
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& size);
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, const Shape& size);

}  // namespace ferrite
