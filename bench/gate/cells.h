#pragma once
/// What scripts/bench-gate times: small programs written against the public headers alone, since they are compiled
/// against an older version of the library, too. Nothing here may use what that version lacks.
#include <functional>
#include <string>
#include <vector>

#include "../timing.h"

namespace gate {

using Run = std::function<void()>;

/// A named program. `make` builds its data, so that only one cell holds memory at a time.
struct Cell {
  std::string name;  ///< without blanks
  std::function<Run()> make;
};

/// Layers, forward and in training, scans and compiled steps.
std::vector<Cell> layer_cells();
/// Streams: step by step, in blocks, of several sequences, at other rates; and how long one takes to make.
std::vector<Cell> stream_cells();
/// Single operations, eager and recorded, products, optimisers, random draws.
std::vector<Cell> operation_cells();
/// One small call each, whose instructions are worth counting.
std::vector<Cell> small_cells();

}  // namespace gate
