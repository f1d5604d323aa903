#pragma once
/// Programs in double precision by the oracles of their operations: what operations that run programs are compared
/// with.
#include <span>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/tensor/oracle.h"

namespace ferrite::detail {

/// The outputs of a program that neither reads nor writes variables. Nothing is rounded to the dtypes between.
std::vector<Dense> evaluate_by_oracles(const Graph& g, std::span<const Dense> in);

}  // namespace ferrite::detail
