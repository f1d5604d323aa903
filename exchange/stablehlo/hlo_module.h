#pragma once
/// A traced program as a StableHLO function.
#include "ferrite/compile/graph.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// Throws as `to_stablehlo`; `options.dynamic` is not looked at.
HloProgram hlo_program(const Graph& graph, const StablehloOptions& options, bool comparable = false);

}  // namespace ferrite::exchange::detail
