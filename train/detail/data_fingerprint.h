#pragma once
/// What tells the examples of a source from others.
#include <string>

#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// The types of an example, "f32[?, 2], i64[]"; empty of no examples.
std::string types_of(const Dataset::Source& source);
/// " ~0.2913 9c2e01ab": for each field of up to 64 examples the weighted mean of |x| of floats, to four digits, the
/// hash of others.
std::string samples_of(const Dataset::Source& source);

}  // namespace ferrite::train::detail
