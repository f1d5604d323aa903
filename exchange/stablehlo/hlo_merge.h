#pragma once
/// Programs of one function at several extents as one.
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/exchange/stablehlo/hlo_program.h"

namespace ferrite::exchange::detail {

/// `programs`: one for each of the sizes of `extents`, made to be compared. Throws ExportError where they differ in
/// what no arithmetic on the extents gives.
HloProgram merged(const std::vector<HloProgram>& programs, const Extents& extents, const StablehloOptions& options);

}  // namespace ferrite::exchange::detail
