#pragma once
/// Options with one number for each axis of space.
#include <string>
#include <string_view>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/pointwise.h"
#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

/// One number for each axis, of one for all or one for each; none: the usual ones. Throws ShapeError for another count,
/// ValueError for numbers below `least`.
inline Shape space_numbers(std::string_view where, std::string_view what, const Shape& given, const Shape& usual,
                           std::int64_t least) {
  const int axes = usual.rank();
  if (given.rank() != 0 && given.rank() != 1 && given.rank() != axes)
    throw_shape(where, std::string(what) + " needs one number" + (axes > 1 ? " or " + std::to_string(axes) : "") +
                           ", got " + given.str());
  Shape all;
  for (int i = 0; i < axes; ++i) all.push_back(given.rank() == 0 ? usual[i] : given[given.rank() == 1 ? 0 : i]);
  for (const std::int64_t n : all)
    if (n < least)
      throw ValueError(std::string(where) + ": " + std::string(what) + " must be at least " + std::to_string(least) +
                       ", got " + given.str());
  return all;
}

}  // namespace ferrite::detail
