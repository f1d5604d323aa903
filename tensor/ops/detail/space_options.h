#pragma once
/// Options with one number for each axis of space.
#include <string_view>

#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

/// One number for each axis, of one for all or one for each; none: the usual ones. Throws ShapeError for another count,
/// ValueError for numbers below `least`.
Shape space_numbers(std::string_view where, std::string_view what, const Shape& given, const Shape& usual,
                    std::int64_t least);

}  // namespace ferrite::detail
