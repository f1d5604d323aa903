#pragma once
/// What operations share that read positions along an axis from a tensor of integers.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/pooled.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::detail {

inline void check_index_dtype(std::string_view where, const Tensor& index) {
  if (!is_integer(index.dtype())) throw_dtype(where, "the index must be i64 or i32, got " + index.spec().str());
}

struct IndexAttrs {
  int axis = 0;
  std::optional<Label> who{};   ///< in whose name negative positions are refused too
  std::optional<bool> known{};  ///< the index was in range where it was first read: in the gradient of what read it
  static constexpr auto fields =
      std::tuple(attr("axis", &IndexAttrs::axis), attr("who", &IndexAttrs::who), attr("known", &IndexAttrs::known));
};

/// The values of an index as non-negative positions below n. Throws ShapeError for one outside [-n, n), or outside
/// [0, n) where the application names who refuses negative ones.
inline PooledVector<std::int64_t> positions(std::string_view where, const IndexAttrs& attrs, const Tensor& index,
                                            std::int64_t n) {
  const std::int64_t least = attrs.who ? 0 : -n;
  PooledVector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(index.numel()));
  const auto take = [&](std::int64_t i) {
    if ((i < least || i >= n) && attrs.who)
      throw ShapeError(std::string(attrs.who->text()) + " " + std::to_string(i) + " lies outside 0.." +
                       std::to_string(n - 1));
    if (i < least || i >= n)
      throw_shape(where, "index " + std::to_string(i) + " is out of range for an axis of extent " + std::to_string(n));
    out.push_back(i < 0 ? i + n : i);
  };
  visit_computed(index.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* from = index.data<T>();
    if (index.contiguous()) {
      for (std::int64_t i = 0; i < index.numel(); ++i) take(static_cast<std::int64_t>(from[i]));
    } else {
      for_each_offset(index.shape(), index.strides(),
                      [&](std::int64_t at) { take(static_cast<std::int64_t>(from[at])); });
    }
  });
  return out;
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

/// Index has x's rank and fits inside x off the axis.
inline void check_gather(std::string_view where, const Tensor& x, const Tensor& index, int axis) {
  check_index_dtype(where, index);
  check_axis(where, axis, x.rank());
  bool fits = index.rank() == x.rank();
  for (int i = 0; i < x.rank() && fits; ++i) fits = i == axis || index.shape()[i] <= x.shape()[i];
  if (!fits)
    throw_shape(where, "index " + index.shape().str() + " does not fit " + x.shape().str() + " along axis " +
                           std::to_string(axis));
}

}  // namespace ferrite::detail
