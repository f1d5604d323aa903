/// The choice of a level: the instructions of the processor, and the request of the environment.
#include "ferrite/tensor/kernel/levels.h"

#include <array>
#include <cstdlib>
#include <string>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/instruction_set.h"
#include "ferrite/tensor/kernel/choose_level.h"
#include "ferrite_levels.h"

namespace ferrite {
namespace detail {
namespace {

/// Returns whether this processor runs a level: whether it has what cmake/FerriteKernels.cmake lets the compiler use
/// for it. The compiler's functions also check the system's support of wide registers.
bool processor_has(std::string_view level) {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  if (level == "avx2") return has_avx2;
  if (level == "avx512")
    return has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd");
  return true;
#else
  return level != "avx2" && level != "avx512";
#endif
}

#define FERRITE_LEVEL_NAME(level) std::string_view(#level),
constexpr std::array kNames{FERRITE_EACH_LEVEL(FERRITE_LEVEL_NAME)};
#undef FERRITE_LEVEL_NAME

std::array<Level, kNames.size()> all_levels() {
  std::array<Level, kNames.size()> levels;
  for (std::size_t i = 0; i < kNames.size(); ++i) levels[i] = {kNames[i], processor_has(kNames[i])};
  return levels;
}

/// Returns "sse2, avx2": the names of all levels, or of those that run.
std::string names_of(std::span<const Level> levels, bool that_run) {
  std::string names;
  for (const Level& level : levels)
    if (level.runs || !that_run) names += (names.empty() ? "" : ", ") + std::string(level.name);
  return names.empty() ? "none" : names;
}

}  // namespace

std::size_t choose_level(std::span<const Level> levels, std::string_view asked) {
  for (std::size_t i = levels.size(); i-- > 0;) {
    const Level& level = levels[i];
    if (asked.empty() ? level.runs : level.name == asked) {
      if (level.runs) return i;
      throw ValueError("FERRITE_ISA: this processor does not have the instruction set: '" + std::string(asked) +
                       "'; it runs " + names_of(levels, true));
    }
  }
  if (asked.empty())
    throw ValueError("instruction_set: this processor has none of those that the library was built for: " +
                     names_of(levels, false) + "; build it with FERRITE_ISA_LEVELS=all");
  throw ValueError("FERRITE_ISA: the library has no kernels for the instruction set: '" + std::string(asked) +
                   "'; it has " + names_of(levels, false) + ", of which this processor runs " + names_of(levels, true));
}

std::size_t level_in_use() {
  static const std::size_t chosen = [] {
    const char* const asked = std::getenv("FERRITE_ISA");
    return choose_level(all_levels(), asked ? asked : "");
  }();
  return chosen;
}

}  // namespace detail

std::string_view instruction_set() { return detail::kNames[detail::level_in_use()]; }

std::vector<std::string_view> instruction_sets() {
  std::vector<std::string_view> names;
  for (const detail::Level& level : detail::all_levels())
    if (level.runs) names.push_back(level.name);
  return names;
}

}  // namespace ferrite
