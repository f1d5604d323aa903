#pragma once
/// Lowering traced programs to StableHLO functions.
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// Lowers a graph to a StableHLO program, `comparable` as in HloStyle. Throws as `to_stablehlo`; `options.dynamic` is
/// ignored.
ExportProgram hlo_program(const Graph& graph, const StablehloOptions& options, bool comparable = false);

/// Merges comparable programs, one for each of the sizes of `extents`. Throws ExportError where they differ in what no
/// arithmetic on the extents gives.
ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const StablehloOptions& options);

}  // namespace ferrite::exchange::detail
