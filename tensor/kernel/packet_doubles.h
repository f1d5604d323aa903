#pragma once
/// Packets of floats computed in doubles.
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

/// The floats of a packet in doubles.
struct Widened {
  static constexpr std::size_t width = static_cast<std::size_t>(kLanes<float>);
  static constexpr std::size_t step = static_cast<std::size_t>(kLanes<double>);
  alignas(64) double at[width];

  Widened() = default;
  explicit Widened(Packet<float> x) {
    alignas(64) float narrow[width];
    x.store(narrow);
    for (std::size_t i = 0; i < width; ++i) at[i] = static_cast<double>(narrow[i]);
  }
  Packet<double> part(std::size_t i) const { return Packet<double>::load(at + i); }
  Packet<float> rounded() const {
    alignas(64) float narrow[width];
    for (std::size_t i = 0; i < width; ++i) narrow[i] = static_cast<float>(at[i]);
    return Packet<float>::load(narrow);
  }
};
/// f of packets of doubles, rounded once.
template <class F, class... X>
Packet<float> in_doubles(F f, X... x) {
  const auto run = [&](const auto&... wide) {
    Widened y;
    for (std::size_t i = 0; i < Widened::width; i += Widened::step) f(wide.part(i)...).store(y.at + i);
    return y.rounded();
  };
  return run(Widened(x)...);
}

}  // namespace ferrite::detail::FERRITE_LEVEL
