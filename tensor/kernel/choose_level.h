#pragma once
/// The rule by which a level (level.h) is chosen.
#include <cstddef>
#include <span>
#include <string_view>

namespace ferrite::detail {

/// A level that the library was built with.
struct Level {
  std::string_view name;
  bool runs;  ///< whether the processor has the instructions, and the system saves their registers
};

/// Returns the position of the level to use in a list that begins with the narrowest: the last that runs or, unless
/// `asked` is empty, the one with that name. Throws ValueError where there is none, or it does not run.
std::size_t choose_level(std::span<const Level> levels, std::string_view asked);

}  // namespace ferrite::detail
