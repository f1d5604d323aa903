#pragma once
/// Helpers of the oracles of scattering operations.
#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/index.h"

namespace oracles {

/// Calls join(place in out, element of source) for all elements of the source in row-major order; out holds x before.
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

}  // namespace oracles
