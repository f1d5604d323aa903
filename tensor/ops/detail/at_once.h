#pragma once
/// Composites along rows that no recorder sees, computed by their own kernels.
#include <optional>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/kernel/rows.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Returns the last `axes` axes of x as rows, if a kernel can take them: dense floats, at least one.
inline std::optional<DenseRows> dense_rows(const Tensor& x, int axes) {
  if (!is_float(x.dtype()) || x.is_abstract() || !x.contiguous() || x.numel() == 0) return {};
  DenseRows rows{1, 1};
  for (int i = 0; i < x.rank(); ++i) (i < x.rank() - axes ? rows.count : rows.n) *= x.shape()[i];
  return rows;
}
/// Returns the rows of two operands, if they have one shape and a kernel can take both.
inline std::optional<DenseRows> dense_rows(const Tensor& a, const Tensor& b, int axes) {
  return dense_rows(b, axes) && a.shape() == b.shape() ? dense_rows(a, axes) : std::nullopt;
}
/// Returns the rows of the axes that a reduction names, if these are the last ones.
inline std::optional<DenseRows> dense_rows(const Tensor& x, const Shape& axes) {
  for (int i = 0; i < axes.rank(); ++i)
    if (axes[i] != x.rank() - axes.rank() + i) return {};
  return axes.rank() == 0 ? std::optional<DenseRows>() : dense_rows(x, axes.rank());
}

/// Calls each(kernels, to, at, rows) for all rows, shared among threads: operands begin at `at`; the result has the
/// same number of elements for each row.
template <class F>
Tensor shared_rows(const Spec& result, const DenseRows& all, F&& each) {
  Tensor y = Tensor::empty(result);
  const auto of = [&]<class T>(T) {
    const RowKernels<T>& kernels = rows_in_use.of<T>();
    const std::int64_t results = y.numel() / all.count;
    T* const to = Writer::data<T>(y);
    in_shares(all.count, all.n, [&](std::int64_t first, std::int64_t count) {
      each(kernels, to + first * results, first * all.n, DenseRows{count, all.n});
    });
  };
  result.dtype == Dtype::f32 ? of(float()) : of(double());
  return y;
}
/// Calls run(kernels, x, y, rows) for the rows of a tensor.
template <class F>
Tensor by_rows(const Tensor& x, const DenseRows& all, const Shape& shape, F&& run) {
  return shared_rows({shape, x.dtype()}, all, [&]<class T>(const auto& k, T* to, std::int64_t at, const DenseRows& r) {
    run(k, x.data<T>() + at, to, r);
  });
}
/// Calls run(kernels, a, b, y, rows) for the rows of two tensors of one type.
template <class F>
Tensor by_rows(const Tensor& a, const Tensor& b, const DenseRows& all, F&& run) {
  return shared_rows(a.spec(), all, [&]<class T>(const auto& k, T* to, std::int64_t at, const DenseRows& r) {
    run(k, a.data<T>() + at, b.data<T>() + at, to, r);
  });
}

/// Applies a function to rows along the last axis, or reduces the last axes; undefined if the axes are not the last
/// ones.
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
