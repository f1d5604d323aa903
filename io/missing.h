#pragma once
/// What readers of numbers do where one is missing.
#include <cstdint>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// What becomes of a number that is missing.
enum class Missing : std::uint8_t {
  refused,  ///< an IoError that names its place
  nan,      ///< a NaN, where floats are asked for
};

}  // namespace ferrite::io
