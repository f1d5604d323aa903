#pragma once
/// The treatment of missing numbers in files of numbers.
#include <cstdint>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// Says what a reader makes of a missing number.
enum class Missing : std::uint8_t {
  refused,  ///< an IoError that names its place
  nan,      ///< a NaN, where floats are asked for
};

}  // namespace ferrite::io
