#pragma once
/// Pooling: the largest elements, means and norms of windows over one, two and three axes.
#include "ferrite/tensor/tensor.h"

namespace ferrite {

// All take x [N, C, ...] or [C, ...] of floats with as many axes of space as their name says, and give it with other
// extents on these axes. Shapes of options hold one number for each axis, or one for all; an empty one is the default.
// A window may begin `padding` elements before the first one and end as many after the last; there are
// (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1 of them, rounded down, with `ceil_mode` up as far as windows
// begin before the end. All functions throw DtypeError for other dtypes than floats, ShapeError for ranks that do not
// fit and where no window does, ValueError for kernels, strides and dilations below 1 and for padding that is negative
// or more than half of what a kernel reaches over.

struct MaxPoolOptions {
  Shape stride{};    ///< the kernel's extents
  Shape padding{};   ///< 0
  Shape dilation{};  ///< 1
  bool ceil_mode = false;
};
/// Largest elements, and their places (i64) in the plane of x, row-major.
struct MaxPooled {
  Tensor values, indices;
};

/// The largest element of every window as torch.nn.functional.max_pool1d: NaN where there is one; the gradient goes to
/// the first of equal elements. Padding counts as -inf.
Tensor max_pool1d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
Tensor max_pool2d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
Tensor max_pool3d(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
/// The same with the places that the values come from: return_indices.
MaxPooled max_pool1d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
MaxPooled max_pool2d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});
MaxPooled max_pool3d_with_indices(const Tensor& x, const Shape& kernel, const MaxPoolOptions& options = {});

struct MaxUnpoolOptions {
  Shape stride{};       ///< the kernel's extents
  Shape padding{};      ///< 0
  Shape output_size{};  ///< of the axes of space; (n - 1) stride - 2 padding + kernel
};
/// Zeros with the elements of x at places that max pooling gave, as torch.nn.functional.max_unpool1d; of equal places
/// the last one stays. Throws ShapeError for indices of another shape than x's, and while running for an index outside
/// of the result.
Tensor max_unpool1d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});
Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});
Tensor max_unpool3d(const Tensor& x, const Tensor& indices, const Shape& kernel, const MaxUnpoolOptions& options = {});

struct AvgPoolOptions {
  Shape stride{};   ///< the kernel's extents
  Shape padding{};  ///< 0
  bool ceil_mode = false;
  bool count_include_pad = true;      ///< whether padding counts as elements, which are zeros
  std::int64_t divisor_override = 0;  ///< what sums are divided by, if not 0
};
/// The mean of every window as torch.nn.functional.avg_pool1d. Sums are taken row by row. Throws ValueError for a
/// negative divisor_override, too.
Tensor avg_pool1d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});
Tensor avg_pool2d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});
Tensor avg_pool3d(const Tensor& x, const Shape& kernel, const AvgPoolOptions& options = {});

struct LpPoolOptions {
  Shape stride{};  ///< the kernel's extents
  bool ceil_mode = false;
};
/// (sum of x^norm)^(1 / norm) over every window as torch.nn.functional.lp_pool1d, which takes a window that reaches
/// beyond the end for its mean times the elements of a whole one. Throws ValueError for a norm of 0 or one that is not
/// finite.
Tensor lp_pool1d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});
Tensor lp_pool2d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});
Tensor lp_pool3d(const Tensor& x, double norm, const Shape& kernel, const LpPoolOptions& options = {});

/// Means of windows [floor(i n / size), ceil((i + 1) n / size)) as torch.nn.functional.adaptive_avg_pool1d: `size` of
/// them on each axis; one number for all axes or one for each; -1 keeps an extent.
Tensor adaptive_avg_pool1d(const Tensor& x, const Shape& size);
Tensor adaptive_avg_pool2d(const Tensor& x, const Shape& size);
Tensor adaptive_avg_pool3d(const Tensor& x, const Shape& size);
/// The largest elements of these windows.
Tensor adaptive_max_pool1d(const Tensor& x, const Shape& size);
Tensor adaptive_max_pool2d(const Tensor& x, const Shape& size);
Tensor adaptive_max_pool3d(const Tensor& x, const Shape& size);
MaxPooled adaptive_max_pool1d_with_indices(const Tensor& x, const Shape& size);
MaxPooled adaptive_max_pool2d_with_indices(const Tensor& x, const Shape& size);
MaxPooled adaptive_max_pool3d_with_indices(const Tensor& x, const Shape& size);

}  // namespace ferrite
