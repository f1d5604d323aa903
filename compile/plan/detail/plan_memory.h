#pragma once
/// Places buffers in one arena so that buffers that live at the same step do not overlap.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ferrite/tensor/shape.h"

namespace ferrite::detail {

/// Checks that the bytes of all values together can be counted, so that every sum over some of them can. Throws
/// ShapeError if they cannot.
void check_bytes(std::span<const Spec> values);

/// The lifetime of a buffer: from the step that fills it to the last one that reads it, both included.
struct Lifetime {
  std::size_t first = 0;
  std::size_t last = 0;
  std::int64_t bytes = 0;
};

/// The places of buffers in one block of memory.
struct MemoryLayout {
  std::vector<std::int64_t> offsets;  ///< by buffer, multiples of 64
  std::int64_t bytes = 0;
  /// The largest sum of the buffers that live at one step, in bytes: no layout needs less.
  std::int64_t bound = 0;
};

/// Places the buffers so that those that live at the same step never overlap: in order of steps, best fit; if that
/// stays more than a twentieth above the bound, largest first.
MemoryLayout lay_out(std::span<const Lifetime> buffers);
/// Gives every buffer a separate place, to find out whether reuse is at fault.
MemoryLayout lay_out_apart(std::span<const Lifetime> buffers);

}  // namespace ferrite::detail
