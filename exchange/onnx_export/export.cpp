/// The functions that export: of a graph, and of a function at several extents.
#include "ferrite/exchange/onnx_export.h"

#include <algorithm>
#include <map>

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/onnx_export/model.h"
#include "ferrite/io/atomic_file.h"

namespace ferrite::onnx {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ValueError("to_onnx: " + what); }

/// Names of dynamic extents, and what their axes say of them.
class Extents {
 public:
  Extents(std::span<const Spec> inputs, const std::vector<DynamicAxis>& axes) : inputs_(inputs), axes_(axes) {
    for (const DynamicAxis& a : axes) {
      if (a.name.empty()) refuse("a dynamic axis needs a name: input " + std::to_string(a.input));
      if (a.input >= inputs.size() || a.axis < 0 || a.axis >= inputs[a.input].shape.rank())
        refuse("there is no axis " + std::to_string(a.axis) + " of input " + std::to_string(a.input) + " for '" +
               a.name + "'");
      if (a.multiple < 1) refuse("extents must be a positive number apart: " + std::to_string(a.multiple));
      const std::int64_t extent = inputs[a.input].shape[a.axis];
      const auto [at, fresh] = first_.try_emplace(a.name, extent);
      if (!fresh && at->second != extent)
        refuse("the axes of '" + a.name + "' differ: " + std::to_string(at->second) + " and " + std::to_string(extent));
      if (fresh) names_.push_back(a.name);
      step_[a.name] = std::max(step_[a.name], a.multiple);
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  /// Above those given, where no extent is 1 or equal to its neighbour; then each alone larger in two ways, then all.
  std::vector<detail::Integers> trials() const {
    detail::Integers base;
    for (std::size_t k = 0; k < names_.size(); ++k) {
      const std::int64_t step = step_.at(names_[k]);
      base.push_back(first_.at(names_[k]) + step * (2 + 3 * static_cast<std::int64_t>(k)));
    }
    std::vector<detail::Integers> all{base};
    for (std::size_t k = 0; k < names_.size(); ++k)
      for (const std::int64_t more : {1, 4}) {
        all.push_back(base);
        all.back()[k] += more * step_.at(names_[k]);
      }
    all.push_back(base);
    for (std::size_t k = 0; k < names_.size(); ++k)
      all.back()[k] += (5 + 2 * static_cast<std::int64_t>(k)) * step_.at(names_[k]);
    return all;
  }

  std::vector<Spec> specs(const detail::Integers& extents) const {
    std::vector<Spec> out(inputs_.begin(), inputs_.end());
    for (const DynamicAxis& a : axes_) {
      const auto k = std::ranges::find(names_, a.name) - names_.begin();
      out[a.input].shape[a.axis] = extents[static_cast<std::size_t>(k)];
    }
    return out;
  }

 private:
  std::span<const Spec> inputs_;
  const std::vector<DynamicAxis>& axes_;
  std::vector<std::string> names_;
  std::map<std::string, std::int64_t> first_, step_;
};

}  // namespace

std::string to_onnx(const Graph& graph, const ExportOptions& options) {
  if (!options.dynamic.empty()) refuse("a graph has its extents; export the function with dynamic axes");
  return detail::encoded(detail::parts_of(graph, options));
}

std::string to_onnx(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                    const ExportOptions& options) {
  if (options.dynamic.empty()) return to_onnx(trace(f, inputs), options);
  const Extents extents(inputs, options.dynamic);
  const std::vector<detail::Integers> trials = extents.trials();
  std::vector<detail::GraphParts> programs;
  for (const detail::Integers& trial : trials) {
    const std::vector<Spec> specs = extents.specs(trial);
    programs.push_back(detail::parts_of(trace(f, specs), options));
  }
  return detail::encoded(detail::merged(std::move(programs), extents.names(), trials, options.dynamic));
}

namespace {

void write(const std::filesystem::path& path, const std::string& bytes) {
  io::write_atomically(path, std::as_bytes(std::span(bytes.data(), bytes.size())));
}

}  // namespace

void write_onnx(const std::filesystem::path& path, const Graph& graph, const ExportOptions& options) {
  write(path, to_onnx(graph, options));
}

void write_onnx(const std::filesystem::path& path, const std::function<Tensors(const Tensors&)>& f,
                std::span<const Spec> inputs, const ExportOptions& options) {
  write(path, to_onnx(f, inputs, options));
}

}  // namespace ferrite::onnx
