/// The functions that export: of a graph, and of a function at several extents.
#include "ferrite/exchange/stablehlo.h"

#include <algorithm>

#include "ferrite/exchange/stablehlo/module.h"

namespace ferrite::exchange {
namespace {

void check_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool fits = !name.empty() && !digit(name[0]) &&
                    std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
  if (!fits)
    throw ValueError("to_stablehlo: the module's name must be letters, digits and underscores, no digit first: '" +
                     std::string(name) + "'");
}

}  // namespace

std::string to_stablehlo(const Graph& graph, const StablehloOptions& options) {
  check_name(options.name);
  return detail::hlo_text(detail::hlo_program(graph, options), options.name, options.locations);
}

}  // namespace ferrite::exchange
