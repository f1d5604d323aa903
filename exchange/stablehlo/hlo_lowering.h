#pragma once
/// How each operation is written in StableHLO. Pointwise operations whose record names an operation of StableHLO with
/// the same operands need nothing more; an operation with a composition is written as that; the others have a function
/// here or, where other formats lack it as well, with the builder of all.
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

using HloFamily = std::span<const NamedLowering<HloBuilder>>;
HloFamily hlo_lowerings();
HloFamily hlo_scan();

/// StableHLO, for all that is written by the same rules.
const Format& hlo_format();

}  // namespace ferrite::exchange::detail
