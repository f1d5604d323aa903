#pragma once
/// Axes whose extents an exported program leaves open.
#include <cstddef>
#include <cstdint>
#include <string>

#include "ferrite/tensor/language.h"

namespace ferrite::exchange {

/// An axis of an input whose extent an exported file leaves open.
struct DynamicAxis {
  std::size_t input = 0;  ///< number of the input, counted from 0
  int axis = 0;           ///< number of the axis, counted from the front
  std::string name{};     ///< name of the extent, as in "batch"; axes with equal names have equal extents
  /// Number that divides every extent with which the program will run: 8 for a net that halves the axis three times. An
  /// example whose extent it does not divide is refused. For axes with equal names all of their multiples apply.
  std::int64_t multiple = 1;
};

}  // namespace ferrite::exchange
