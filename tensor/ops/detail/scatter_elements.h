#pragma once
/// What the operations share that put a source's elements at an index of the same rank.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace ferrite::detail {

/// Refuses a source that differs from its index in shape, or from x in dtype.
inline void check_scatter(std::string_view where, Inputs in, int axis) {
  check_gather(where, in[0], in[1], axis);
  if (in[2].shape() != in[1].shape())
    throw_shape(where, "index " + in[1].shape().str() + " and source " + in[2].shape().str() + " differ");
  if (in[2].dtype() != in[0].dtype())
    throw_dtype(where, "dtypes differ: " + in[0].spec().str() + " and " + in[2].spec().str());
}

/// join(place in out, element of source) for all elements of the source, in row-major order; out holds x before.
template <class T, class Join>
void scatter_by(std::string_view where, Inputs in, Tensor& out, const IndexAttrs& attrs, Join&& join) {
  copy_to(Writer::raw(out), in[0]);
  const PooledVector<std::int64_t> at = positions(where, attrs, in[1], in[0].shape()[attrs.axis]);
  const RowMajor source(in[2]);
  T* to = Writer::data<T>(out);
  const T* from = source->data<T>();
  each_indexed(in[1].shape(), out.strides(), attrs.axis, at.data(), [&](std::int64_t i) { join(to[i], *from++); });
}

}  // namespace ferrite::detail
