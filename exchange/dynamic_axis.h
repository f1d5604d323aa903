#pragma once
/// Axes whose extents an exported program leaves open.
#include <cstddef>
#include <cstdint>
#include <string>

#include "ferrite/tensor/language.h"

namespace ferrite::exchange {

/// An axis of an input whose extent a file leaves open.
struct DynamicAxis {
  std::size_t input = 0;
  int axis = 0;        ///< from the front
  std::string name{};  ///< of the extent, as in "batch"; axes of one name have one extent
  /// All extents are multiples of this, where others make no sense: 8 for a net that halves the axis three times. An
  /// example that is none is refused. Of axes of one name, all multiples hold.
  std::int64_t multiple = 1;
};

}  // namespace ferrite::exchange
