/// The functions that export a graph, or a function traced at several extents.
#include "ferrite/exchange/onnx_export.h"

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/onnx_export/export_model.h"
#include "ferrite/io/atomic_file.h"

namespace ferrite::onnx {
std::string to_onnx(const Graph& graph, const ExportOptions& options) {
  if (!options.dynamic.empty())
    throw ValueError("to_onnx: a graph has its extents; export the function with dynamic axes");
  return exchange::detail::onnx_bytes(exchange::detail::onnx_program(graph, options), options.name);
}

std::string to_onnx(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                    const ExportOptions& options) {
  if (options.dynamic.empty()) return to_onnx(trace(f, inputs), options);
  const auto write = [&](const Graph& graph) { return exchange::detail::onnx_program(graph, options); };
  const auto merge = [&](const std::vector<exchange::detail::ExportProgram>& programs,
                         const exchange::detail::Extents& extents) {
    return exchange::detail::merged(programs, extents, options);
  };
  const exchange::detail::ExportProgram merged =
      exchange::detail::program_for_any_extent("to_onnx", f, inputs, options.dynamic, write, merge);
  return exchange::detail::onnx_bytes(merged, options.name);
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
