#pragma once
/// The seeds of random tests.
#include <cstdint>
#include <cstdlib>

namespace seeds {

struct Range {
  std::uint64_t first, count;
};

/// Returns FERRITE_FIRST_SEED and FERRITE_PROGRAMS if they are set, else `count` seeds from 1 on. A more expensive test
/// uses one of every `share` seeds.
inline Range asked_for(std::uint64_t count, std::uint64_t share = 1) {
  const char* const first = std::getenv("FERRITE_FIRST_SEED");
  const char* const n = std::getenv("FERRITE_PROGRAMS");
  const std::uint64_t all = n ? std::strtoull(n, nullptr, 10) : count;
  return {first ? std::strtoull(first, nullptr, 10) : 1, (all + share - 1) / share};
}

}  // namespace seeds
