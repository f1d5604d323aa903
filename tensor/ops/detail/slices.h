#pragma once
/// Reading and adding whole slices along an axis at positions from an index.
#include <algorithm>
#include <span>

#include "ferrite/tensor/ops/detail/along_axis.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace ferrite::detail {

/// Whether an index of x's rank names whole slices of x: a rank-1 index expanded along all axes but one, as the
/// gradient of index_select has it.
inline bool names_slices(const Tensor& index, const Shape& x, int axis) {
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && (index.shape()[i] != x[i] || (index.strides()[i] != 0 && x[i] != 1))) return false;
  return index.numel() > 0;
}

/// The positions of these slices, checked as `positions` does.
inline PooledVector<std::int64_t> slice_positions(std::string_view where, const IndexAttrs& attrs, const Tensor& index,
                                                  std::int64_t n) {
  const std::int64_t count = index.shape()[attrs.axis];
  Tensor column = Tensor::empty({{count}, index.dtype()});
  copy_strided(Writer::raw(column), {1}, index.raw(), {index.strides()[attrs.axis]}, {count}, size_of(index.dtype()));
  return positions(where, attrs, column, n);
}

/// Copies the slices of x at these positions into `out`, which is row-major.
inline void copy_slices(Tensor& out, const Tensor& x, int axis, std::span<const std::int64_t> at) {
  const std::int64_t bytes = size_of(x.dtype());
  std::byte* to = Writer::raw(out);
  if (x.contiguous()) {
    const AlongAxis a(x.shape(), axis);
    const std::int64_t slice = a.inner * bytes;
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (const std::int64_t i : at) {
        std::copy_n(x.raw() + (o * a.n + i) * slice, slice, to);
        to += slice;
      }
    return;
  }
  Shape slice = x.shape();
  slice[axis] = 1;
  for (const std::int64_t i : at) {
    copy_strided(to, out.strides(), x.raw() + i * x.strides()[axis] * bytes, x.strides(), slice, bytes);
    to += out.strides()[axis] * bytes;
  }
}

/// Adds slices of a row-major source to those of `out` at these positions, one after the other.
inline void add_slices(Tensor& out, int axis, std::span<const std::int64_t> at, const Tensor& source) {
  const AlongAxis a(out.shape(), axis);
  visit_computed(out.dtype(), [&](auto zero) {
    using T = decltype(zero);
    T* const first = Writer::data<T>(out);
    const T* from = source.data<T>();
    for (std::int64_t o = 0; o < a.outer; ++o)
      for (const std::int64_t row : at) {
        T* const to = first + (o * a.n + row) * a.inner;
        for (std::int64_t i = 0; i < a.inner; ++i) to[i] = static_cast<T>(to[i] + from[i]);
        from += a.inner;
      }
  });
}

}  // namespace ferrite::detail
