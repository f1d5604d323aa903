#pragma once
/// When a monitored value is better than another.
#include "ferrite/train/callbacks.h"

namespace ferrite::train::detail {

/// The value that a monitor looks at. Throws ValueError where the epoch has none of that name.
double monitored(const char* who, const Monitor& monitor, const Training& training);
bool larger_is_better(const Monitor& monitor);
/// Whether `value` is better than `best`; NaN never is, anything else is better than NaN.
bool better(const Monitor& monitor, double value, double best);

}  // namespace ferrite::train::detail
