#pragma once
/// What a function does at extents so small that programs there cannot be compared with others.
#include <functional>

#include "ferrite/exchange/emit/extents.h"

namespace ferrite::exchange::detail {

/// Refuses, as an ExportError that begins with `who`, a function that reads something else there than what follows from
/// its reads at the sizes of `extents`. `make` traces it.
void check_small_extents(const std::string& who, const ExtentTrials& trials, const Extents& extents,
                         const std::vector<KeepExtentsOpen::Reads>& reads,
                         const std::function<void(const std::vector<Spec>&)>& make);

}  // namespace ferrite::exchange::detail
