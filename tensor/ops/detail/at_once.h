#pragma once
/// Composites along rows that nothing records, by kernels of their own.
#include <optional>

#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/reduced_shape.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// The last `axes` axes of x as rows, where a kernel takes them: dense floats, at least one.
inline std::optional<DenseRows> dense_rows(const Tensor& x, int axes) {
  if (!is_float(x.dtype()) || x.is_abstract() || !x.contiguous() || x.numel() == 0) return {};
  DenseRows rows{1, 1};
  for (int i = 0; i < x.rank(); ++i) (i < x.rank() - axes ? rows.count : rows.n) *= x.shape()[i];
  return rows;
}
/// The same of the axes that a reduction names, where these are the last ones.
inline std::optional<DenseRows> dense_rows(const Tensor& x, const Shape& axes) {
  for (int i = 0; i < axes.rank(); ++i)
    if (axes[i] != x.rank() - axes.rank() + i) return {};
  return axes.rank() == 0 ? std::optional<DenseRows>() : dense_rows(x, axes.rank());
}

/// run(kernels, x, y, rows) for all rows, shared among threads; y has `each` elements for each row.
template <class F>
Tensor by_rows(const Tensor& x, const DenseRows& all, const Shape& shape, F&& run) {
  Tensor y = Tensor::empty({shape, x.dtype()});
  const auto of = [&]<class T>(T) {
    const RowKernelsOf<T>& kernels = rows_in_use.get().of<T>();
    const std::int64_t each = y.numel() / all.count;
    const T* const from = x.data<T>();
    T* const to = Writer::data<T>(y);
    in_shares(all.count, all.n, [&](std::int64_t first, std::int64_t count) {
      run(kernels, from + first * all.n, to + first * each, DenseRows{count, all.n});
    });
  };
  x.dtype() == Dtype::f32 ? of(float()) : of(double());
  return y;
}

/// A function of rows along the last axis, or of the last axes reduced; undefined where they are not the last ones.
template <class F>
Tensor along_last(const Tensor& x, int axis, F&& run) {
  const auto rows = dense_rows(x, Shape{axis});
  return rows ? by_rows(x, *rows, x.shape(), run) : Tensor();
}
template <class F>
Tensor reduced_last(const Tensor& x, const Shape& axes, bool keepdim, F&& run) {
  const auto rows = dense_rows(x, axes);
  return rows ? by_rows(x, *rows, reduced_shape(x.shape(), axes, keepdim), run) : Tensor();
}

}  // namespace ferrite::detail
