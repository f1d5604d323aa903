#pragma once
/// Where buffers stand in one arena so that none overlaps another that lives at the same step.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

/// Every number of bytes in a plan is a sum over some of its values: where the sum over all of them can be counted, so
/// can those. Throws ShapeError where it cannot.
void check_bytes(std::span<const Spec> values);

/// How long a buffer lives: from the step that fills it to the last one that reads it, both included.
struct Lifetime {
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t bytes = 0;
};

/// Where buffers stand in one piece of memory.
struct MemoryLayout {
  std::vector<std::int64_t> offsets;  ///< by buffer, multiples of 64
  std::int64_t bytes = 0;
  /// The largest sum of what lives at one step: no layout needs less.
  std::int64_t bound = 0;
};

/// Buffers that live at the same step never overlap. First in order of steps, best fit; where that stays more than a
/// twentieth above the bound, largest first.
MemoryLayout lay_out(std::span<const Lifetime> buffers);
/// Every buffer has its own place: for finding out whether reuse is at fault.
MemoryLayout lay_out_apart(std::span<const Lifetime> buffers);

}  // namespace ferrite::detail
