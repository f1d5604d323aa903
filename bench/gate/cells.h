#pragma once
/// The cells that scripts/bench-gate times: small programs written against the public headers alone, because they are
/// also compiled against an older version of the library. Nothing here may use what that version lacks.
#include <functional>
#include <string>
#include <vector>

#include "../timing.h"

namespace gate {

using Run = std::function<void()>;

/// A named program. `make` builds its data, so that only one cell holds memory at a time.
struct Cell {
  std::string name;  ///< contains no blanks
  std::function<Run()> make;
};

/// Returns the cells of layers, forward and in training, of scans and of compiled steps.
std::vector<Cell> layer_cells();
/// Returns the cells of streams: step by step, in blocks, of several sequences, at other rates; and of making a stream.
std::vector<Cell> stream_cells();
/// Returns the cells of single operations, eager and recorded, of products, optimisers and random draws.
std::vector<Cell> operation_cells();
/// Returns cells of one small call each, whose instructions are worth counting.
std::vector<Cell> small_cells();

}  // namespace gate
