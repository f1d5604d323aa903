#pragma once
/// The rule by which a level (level.h) is chosen.
#include <cstddef>
#include <span>
#include <string_view>

namespace ferrite::detail {

/// A level that the library was built with.
struct Level {
  std::string_view name;
  bool runs;  ///< whether the processor, and the system for its registers, has the instructions
};

/// The position of the level to use in a list whose narrowest comes first: the last that runs or, unless it is empty,
/// the one called `asked`. Throws ValueError where there is none, or it does not run.
std::size_t choose_level(std::span<const Level> levels, std::string_view asked);

}  // namespace ferrite::detail
