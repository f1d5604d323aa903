/// The names of normed weights in PyTorch's older checkpoints.
#include <optional>

#include "ferrite/io/torch.h"

namespace ferrite::io {
namespace {

/// "encoder.weight" of "encoder.weight_g" and "_g".
std::optional<std::string_view> before(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return {};
  return name.substr(0, name.size() - ending.size());
}

/// "encoder.parametrizations.weight.original" of "encoder.weight" and "original".
std::string parametrized(std::string_view parameter, std::string_view part) {
  const std::size_t dot = parameter.rfind('.'), leaf = dot == std::string_view::npos ? 0 : dot + 1;
  return std::string(parameter.substr(0, leaf)) + "parametrizations." + std::string(parameter.substr(leaf)) + "." +
         std::string(part);
}

}  // namespace

TensorFile with_parametrization_names(const TensorFile& file) {
  const auto has = [&](std::string_view parameter, std::string_view ending) {
    return file.contains(std::string(parameter) + std::string(ending));
  };
  return file.renamed([&](std::string_view name) -> std::string {
    if (const auto p = before(name, "_g"); p && has(*p, "_v")) return parametrized(*p, "original0");
    if (const auto p = before(name, "_orig"); p && has(*p, "_u")) return parametrized(*p, "original");
    if (const auto p = before(name, "_u"); p && has(*p, "_orig")) return parametrized(*p, "0._u");
    if (const auto p = before(name, "_v")) {
      if (has(*p, "_g")) return parametrized(*p, "original1");
      if (has(*p, "_orig")) return parametrized(*p, "0._v");
    }
    return std::string(name);
  });
}

}  // namespace ferrite::io
