#pragma once
/// What the tiles of convolutions share: their sums in registers, and counts that the compiler knows.
#include <cstdint>
#include <type_traits>

#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::detail::FERRITE_LEVEL {

template <class T, int MR, int NV>
using Sums = RawPacket<T>[static_cast<std::size_t>(MR)][static_cast<std::size_t>(NV)];

/// f(std::integral_constant<int, n>), n in [1, Most].
template <int Most, class F>
[[gnu::always_inline]] inline void with_count(std::int64_t n, const F& f) {
  if constexpr (Most == 1) {
    f(std::integral_constant<int, 1>());
  } else if (n == Most) {
    f(std::integral_constant<int, Most>());
  } else {
    with_count<Most - 1>(n, f);
  }
}

/// n things in groups of at most `most`, as equal as can be: f(first, how many).
template <class F>
void equal_groups(std::int64_t n, std::int64_t most, const F& f) {
  const std::int64_t groups = (n + most - 1) / most;
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t size = (n - first) / (groups - g);
    f(first, size);
    first += size;
  }
}

}  // namespace ferrite::detail::FERRITE_LEVEL
