#pragma once
/// What the files of composed functions share: refusals of dtypes, oracles and samples of functions of one number.
#include <algorithm>
#include <string>
#include <vector>

#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

/// Throws DtypeError for what is not f32 or f64.
inline void check_float(const Tensor& x, std::string_view where) {
  if (!is_float(x.dtype()))
    throw_dtype(where, "dtype " + std::string(name_of(x.dtype())) + " is not supported; cast it to a float first");
}

/// Oracle of a function of one number.
template <class F>
void map_oracle(std::span<const Dense> in, std::span<Dense> out, F f) {
  std::transform(in[0].values.begin(), in[0].values.end(), out[0].values.begin(), f);
}

/// Oracle of a function of two numbers, which broadcast.
template <class F>
void zip_oracle(std::span<const Dense> in, std::span<Dense> out, F f) {
  for_each_index(out[0].shape, [&](const Shape& i) { out[0].at(i) = f(in[0].broadcast_at(i), in[1].broadcast_at(i)); });
}

/// Samples of a function of one number: some numbers, one number, none.
inline std::vector<Sample> numbers(const Attrs& attrs = {}, Range range = {-8, 8}, bool smooth_at_ties = true) {
  std::vector<Sample> list;
  for (const Shape& shape : {Shape{3, 5}, Shape{}, Shape{0, 2}})
    list.push_back({.inputs = {{shape}}, .attrs = attrs, .range = range, .smooth_at_ties = smooth_at_ties});
  return list;
}

}  // namespace ferrite::detail
