#pragma once
/// Traced programs as StableHLO functions.
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

/// Throws as `to_stablehlo`; `options.dynamic` is not looked at.
ExportProgram hlo_program(const Graph& graph, const StablehloOptions& options, bool comparable = false);

/// `programs`: one for each of the sizes of `extents`, made to be compared, as one. Throws ExportError where they
/// differ in what no arithmetic on the extents gives.
ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const StablehloOptions& options);

}  // namespace ferrite::exchange::detail
