/// Writes operations on windows: convolutions and pooling.
#include "ferrite/exchange/freeze/c_calls.h"

namespace ferrite::exchange::detail {

std::span<const CWriter> window_writers() { return {}; }

}  // namespace ferrite::exchange::detail
