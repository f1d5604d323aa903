#pragma once
/// Shared parts of functions along axes: a dense tensor seen along one axis, shapes without reduced axes, and the
/// common parts of running functions and their gradients.
#include <algorithm>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/shape.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/threads.h"

namespace ferrite::detail {

/// Row-major elements seen as [outer, n, inner], with the axis in the middle.
struct AlongAxis {
  std::int64_t outer = 1, n = 1, inner = 1;

  AlongAxis(const Shape& s, int axis) : n(s[axis]) {
    for (int i = 0; i < s.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : s[i];
  }
  std::int64_t lines() const { return outer * inner; }
  /// Returns the position of the first element of a line.
  std::int64_t first(std::int64_t line) const { return line / inner * n * inner + line % inner; }
};

/// Calls f(first, count) for all of [0, n) in pieces large enough for a thread each; `cost` is the cost of one, in
/// elements.
template <class F>
void in_shares(std::int64_t n, std::int64_t cost, F&& f) {
  constexpr std::int64_t kWorth = 1 << 15;
  const std::int64_t share = std::max<std::int64_t>(1, kWorth / std::max<std::int64_t>(1, cost));
  if (n <= share) {
    f(std::int64_t{0}, n);
    return;
  }
  parallel_for((n + share - 1) / share, [&](std::int64_t k) { f(k * share, std::min(share, n - k * share)); });
}

inline bool is_reduced(const Shape& axes, int axis) {
  for (const std::int64_t a : axes)
    if (a == axis) return true;
  return false;
}

/// Returns a shape without the reduced axes, or with extents of 1 in their places.
inline Shape reduced_shape(const Shape& s, const Shape& axes, bool keepdim) {
  Shape out;
  for (int i = 0; i < s.rank(); ++i) {
    if (!is_reduced(axes, i)) {
      out.push_back(s[i]);
    } else if (keepdim) {
      out.push_back(1);
    }
  }
  return out;
}

/// Shifts x along an axis: element k of the result is the one n places after x[k] in the order of the run (before it
/// for negative n), or `value` where there is none.
Tensor neighbours(const Tensor& x, const RunningAttrs& attrs, std::int64_t n, double value);

}  // namespace ferrite::detail
