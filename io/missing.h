#pragma once
/// The treatment of missing numbers in files of numbers.
#include <cstdint>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// The treatment of missing numbers by the readers of CSV and .ts files: an error, or a NaN.
enum class Missing : std::uint8_t {
  refused,  ///< an IoError that names its place
  nan,      ///< a NaN, where floats are asked for
};

}  // namespace ferrite::io
