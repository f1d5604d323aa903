#pragma once
/// Packets of floats computed in doubles.
#include "ferrite/tensor/kernel/packet_bits.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// f of packets of doubles, rounded once.
template <class F, class... X>
Packet<float> in_doubles(F f, X... x) {
  const auto run = [&](const auto&... wide) {
    Doubles y;
    for (std::size_t i = 0; i < std::size(y.at); ++i) y.at[i] = f(wide.at[i]...);
    return to_floats(y);
  };
  return run(to_doubles(x)...);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
