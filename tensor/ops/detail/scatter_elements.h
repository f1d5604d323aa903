#pragma once
/// What the operations share that put a source's elements at an index of the same rank.
#include <cmath>

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

/// The same for doubles.
template <class Join>
void scatter_oracle(std::span<const Dense> in, Dense& out, const IndexAttrs& attrs, Join&& join) {
  out.values = in[0].values;
  for_each_index(in[1].shape, [&](const Shape& i) {
    Shape to = i;
    to[attrs.axis] = position(in[1].at(i), in[0].shape[attrs.axis]);
    join(out.at(to), in[2].at(i));
  });
}

inline std::vector<Sample> scatter_samples() {
  return {
      {.inputs = {{{4, 3}}, {{2, 3}, Dtype::i64}, {{2, 3}}}, .attrs = IndexAttrs{0}, .indices = {3, 0, 1, 3, -4, 2}},
      {.inputs = {{{2, 3}}, {{2, 4}, Dtype::i64}, {{2, 4}}},
       .attrs = IndexAttrs{1},
       .indices = {0, 0, 0, 2, 1, 1, 2, 2}},
      {.inputs = {{{2, 4, 2}}, {{1, 3, 2}, Dtype::i32}, {{1, 3, 2}}}, .attrs = IndexAttrs{1}, .indices = {1, 3, 2, 3}},
      {.inputs = {{{3}}, {{0}, Dtype::i64}, {{0}}}, .attrs = IndexAttrs{0}, .indices = {0}}};
}

}  // namespace ferrite::detail
