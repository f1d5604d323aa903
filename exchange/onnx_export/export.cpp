/// The functions that export: of a graph, and of a function at several extents.
#include "ferrite/exchange/onnx_export.h"

#include "ferrite/compile/tracer.h"
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/emit/program_merge.h"
#include "ferrite/exchange/onnx_export/export_model.h"
#include "ferrite/io/atomic_file.h"
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::onnx {
std::string to_onnx(const Graph& graph, const ExportOptions& options) {
  if (!options.dynamic.empty())
    throw ValueError("to_onnx: a graph has its extents; export the function with dynamic axes");
  return exchange::detail::onnx_bytes(exchange::detail::onnx_program(graph, options), options.name);
}

std::string to_onnx(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                    const ExportOptions& options) {
  if (options.dynamic.empty()) return to_onnx(trace(f, inputs), options);
  const exchange::detail::ExtentTrials trials("to_onnx", inputs, options.dynamic);
  const nn::detail::ComposeAsScans as_scans;  // recurrent layers that ONNX has no node for
  const auto traced = [&](const std::vector<Spec>& specs) { return trace(f, specs); };
  const auto written = [&](const Graph& graph) { return exchange::detail::onnx_program(graph, options); };
  auto tried = trials.try_all([&](const std::vector<Spec>& specs) { return written(traced(specs)); });
  const std::string fault = exchange::detail::try_example(trials, tried, traced, written);
  exchange::detail::Extents extents(trials, tried.sizes);
  exchange::detail::learn_extents(extents, tried.programs);
  const exchange::detail::ExportProgram merged = exchange::detail::merged(tried.programs, extents, options);
  if (!fault.empty()) throw ExportError(fault);
  exchange::detail::check_small_extents("to_onnx", trials, extents, tried.reads,
                                        [&](const std::vector<Spec>& specs) { (void)trace(f, specs); });
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
