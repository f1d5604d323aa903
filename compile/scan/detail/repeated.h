#pragma once
/// Programs that do on many rows what others do on few.
#include "ferrite/compile/graph.h"

namespace ferrite::detail {

/// Tells whether `many` computes for `times` as many rows of its first input what `few` computes for each part of them;
/// the other inputs are the same. True only of programs of pointwise operations, reshapes and permutations.
bool is_repeated(const Graph& few, const Graph& many, std::int64_t times);

}  // namespace ferrite::detail
