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
      attr_list(attr("axis", &IndexAttrs::axis), attr("who", &IndexAttrs::who), attr("known", &IndexAttrs::known));
};

/// The values of an index as non-negative positions below n. Throws ShapeError for one outside [-n, n), or outside
/// [0, n) where the application names who refuses negative ones.
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

/// f(offset) for all elements of an index of this shape, in row-major order, of a tensor with these strides at
/// positions along an axis.
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
