/// The functions that export a graph, or a function traced at several extents.
#include "ferrite/exchange/stablehlo.h"

#include <algorithm>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/stablehlo/hlo_module.h"
#include "ferrite/exchange/stablehlo/hlo_text.h"

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
  if (!options.dynamic.empty())
    throw ValueError("to_stablehlo: a graph has its extents; export the function with dynamic axes");
  return detail::hlo_text(detail::hlo_program(graph, options), options.name, options.locations);
}

std::string to_stablehlo(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                         const StablehloOptions& options) {
  if (options.dynamic.empty()) return to_stablehlo(trace(f, inputs), options);
  check_name(options.name);
  const auto write = [&](const Graph& graph) { return detail::hlo_program(graph, options, true); };
  const auto merge = [&](const std::vector<detail::ExportProgram>& programs, const detail::Extents& extents) {
    return detail::merged(programs, extents, options);
  };
  const detail::ExportProgram merged =
      detail::program_for_any_extent("to_stablehlo", f, inputs, options.dynamic, write, merge);
  return detail::hlo_text(merged, options.name, options.locations);
}

}  // namespace ferrite::exchange
