#pragma once
/// The lowerings of operations to StableHLO. Pointwise operations whose record names an operation of StableHLO with the
/// same operands need none; an operation with a composition is written as that; the others have a function here or,
/// where other formats lack it as well, in common_lowerings.
#include "ferrite/exchange/stablehlo/hlo_builder.h"

namespace ferrite::exchange::detail {

using HloFamily = std::span<const NamedLowering<HloBuilder>>;
HloFamily hlo_lowerings();
HloFamily hlo_scan();

/// Returns the facts about StableHLO that shared code needs.
const Format& hlo_format();

}  // namespace ferrite::exchange::detail
