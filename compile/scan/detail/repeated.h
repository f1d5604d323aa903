#pragma once
/// Programs that do on many rows what others do on few.
#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// Whether `many` gives for `times` the rows of its first input what `few` gives for one part after the other; the
/// other inputs are the same. Proved for programs of pointwise operations, reshapes and permutations alone.
bool is_repeated(const Graph& few, const Graph& many, std::int64_t times);

}  // namespace ferrite::detail
