#pragma once
/// The body of a scan partitioned into stages: once, before, step, after.
#include <vector>

#include "ferrite/compile/scan_body.h"

namespace ferrite::detail {

/// Where a value stands while a scan runs.
struct ScanPlace {
  enum class Kind : std::uint8_t {
    carry,
    x,        ///< a stack that came in
    capture,  ///< the same in all steps, from outside
    once,     ///< the same in all steps, computed before the first
    chunk,    ///< of every step in a chunk of steps
    y,        ///< a stack that goes out
  };
  Kind kind = Kind::carry;
  std::size_t index = 0;
};

/// A graph with the places of its inputs and outputs.
struct ScanStage {
  Graph graph;
  std::vector<ScanPlace> in, out;
  /// Nothing runs in it: no value goes out, and none is refused.
  bool empty() const { return graph.outputs.empty() && graph.nodes.empty(); }
};

/// A term of a sum over all steps, as sums over rows: a^T b of [rows, a], [rows, b], or the rows b themselves.
struct ScanTerm {
  std::size_t sum = 0;
  Dtype dtype{};
  std::int64_t rows = 1;  ///< of one step
  std::int64_t a_width = 0;
  std::int64_t b_width = 0;
  ScanPlace a{}, b{};
};

/// A body taken apart. `before` and `after` act on a chunk of steps at once, all their values having a leading axis.
struct ScanParts {
  ScanStage once;    ///< what depends on captures alone
  ScanStage before;  ///< products with the xs, and what follows from them
  ScanStage step;    ///< what depends on the carries
  ScanStage after;   ///< products that no carry waits for
  std::vector<ScanTerm> terms;
  /// Stacks of carries as they come into the steps: which carry, where to.
  std::vector<std::pair<std::size_t, ScanPlace>> carried;
  std::vector<Spec> chunks;  ///< one step of each value that stands in chunks
};

/// For chunks of so many steps; 0: whoever runs it has one step at a time, so `before` and `after` are empty and `step`
/// does their work. Else the parts but for the extents of leading axes do not depend on that number.
ScanParts take_apart(const ScanBody& body, std::int64_t chunk);

}  // namespace ferrite::detail
