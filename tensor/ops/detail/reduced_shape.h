#pragma once
/// The shapes of reductions.
#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

inline bool is_reduced(const Shape& axes, int axis) {
  for (const std::int64_t a : axes)
    if (a == axis) return true;
  return false;
}

/// A shape without the reduced axes, or with extents of 1 in their places.
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

}  // namespace ferrite::detail
