#pragma once
/// Shared parts of operations that read and write at positions given by a tensor of integers.
#include <algorithm>
#include <span>

#include "ferrite/tensor/along_axis.h"
#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/inline_vector.h"
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/strided.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

inline void check_index_dtype(std::string_view where, const Tensor& index) {
  if (!is_integer(index.dtype())) throw_dtype(where, "the index must be i64 or i32, got " + index.spec().str());
}

/// Returns the values of an index as non-negative positions below n. Throws ShapeError for one outside [-n, n), or
/// outside [0, n) where the application has a name, `who`.
inline PooledVector<std::int64_t> positions(std::string_view where, const IndexAttrs& attrs, const Tensor& index,
                                            std::int64_t n) {
  const std::int64_t least = attrs.who ? 0 : -n;
  PooledVector<std::int64_t> out(static_cast<std::size_t>(index.numel()));
  const auto refuse = [&](std::int64_t i) {
    if (i >= least && i < n) return;
    if (attrs.who)
      throw ShapeError(std::string(attrs.who->text()) + " " + std::to_string(i) + " lies outside 0.." +
                       std::to_string(n - 1));
    throw_shape(where, "index " + std::to_string(i) + " is out of range for an axis of extent " + std::to_string(n));
  };
  visit_computed(index.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const RowMajor rows(index);
    const T* from = rows->template data<T>();
    bool outside = false;
    for (std::size_t k = 0; k < out.size(); ++k) {
      const auto i = static_cast<std::int64_t>(from[k]);
      outside |= i < least || i >= n;
      out[k] = i < 0 ? i + n : i;
    }
    for (std::size_t k = 0; outside && k < out.size(); ++k) refuse(static_cast<std::int64_t>(from[k]));
  });
  return out;
}

/// Calls f(offset) for all elements of an index of this shape, in row-major order: offsets in a tensor with these
/// strides at the positions along an axis.
template <class F>
void each_indexed(const Shape& shape, const Shape& strides, int axis, const std::int64_t* positions, F&& f) {
  Walk<1> walk;
  for (int i = 0; i < shape.rank(); ++i) walk.shape.push_back(shape[i]);
  walk.strides[0] = strides;
  const std::int64_t step = strides[axis];
  walk.strides[0][axis] = 0;
  walk.rows([&](const std::int64_t* at, std::int64_t n, const std::int64_t* along) {
    for (std::int64_t k = 0; k < n; ++k) f(at[0] + k * along[0] + *positions++ * step);
  });
}

inline std::int64_t position(double index, std::int64_t n) {
  const auto i = static_cast<std::int64_t>(index);
  return i < 0 ? i + n : i;
}

inline Effects effects_of_index(const IndexAttrs& attrs) {
  return {.throws = !attrs.known.value_or(false), .allocates = true};
}
inline IndexAttrs along(int axis, const IndexOptions& o) {
  IndexAttrs attrs{.axis = axis};
  if (!o.who.empty()) attrs.who = o.who;
  return attrs;
}

/// Throws unless the index has x's rank and fits inside x on all axes but the given one.
inline void check_gather(std::string_view where, const Tensor& x, const Tensor& index, int axis) {
  check_index_dtype(where, index);
  check_axis(where, axis, x.rank());
  bool fits = index.rank() == x.rank();
  for (int i = 0; i < x.rank() && fits; ++i) fits = i == axis || index.shape()[i] <= x.shape()[i];
  if (!fits)
    throw_shape(where, "index " + index.shape().str() + " does not fit " + x.shape().str() + " along axis " +
                           std::to_string(axis));
}

// ---- whole slices along an axis ---------------------------------------------------------------------------

/// Returns whether an index of x's rank names whole slices of x: a rank-1 index expanded along all axes but one, as in
/// the gradient of index_select.
inline bool names_slices(const Tensor& index, const Shape& x, int axis) {
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && (index.shape()[i] != x[i] || (index.strides()[i] != 0 && x[i] != 1))) return false;
  return index.numel() > 0;
}

/// Returns the positions of the slices that such an index names, checked as `positions` does.
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

/// Adds slices of a row-major source to those of `out` at these positions, in order.
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

// ---- by an index that has been read before, as in gradients: nothing is refused ---------------------------

/// Returns zeros of x's type with the source's elements added at an index along an axis.
Tensor scatter_known(const Spec& x, int axis, const Tensor& index, const Tensor& source);
/// Returns the elements at an index: out[i][j] = x[index[i][j]][j] for axis 0, and so on.
Tensor gather_known(const Tensor& x, int axis, const Tensor& index);

// ---- elements put at indices ------------------------------------------------------------------------------

/// Returns x with the source's elements at an index that has been read before, so none is refused.
Tensor replace_known(const Tensor& x, int axis, const Tensor& index, const Tensor& source);
/// Returns x with the larger or smaller of its element and the source's at an index along an axis.
Tensor scatter_extremum(const Tensor& x, int axis, const Tensor& index, const Tensor& source, bool largest);
/// Returns x multiplied by the source's elements at an index along an axis.
Tensor scatter_prod(const Tensor& x, int axis, const Tensor& index, const Tensor& source);

/// Checks a source for slices of x at a rank-1 index: it needs x's dtype, and x's shape except along the axis.
void check_slices(std::string_view where, const Tensor& x, const Tensor& index, const Tensor& source, int axis);
/// Expands a rank-1 index along an axis to a shape whose other axes repeat it.
Tensor spread_index(const Tensor& index, int axis, const Shape& shape);
/// Returns the part of a source that an index of the same rank covers: its first elements along every axis.
Tensor source_for(std::string_view where, const Tensor& source, const Tensor& index);

}  // namespace ferrite::detail
