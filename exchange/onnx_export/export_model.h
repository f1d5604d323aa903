#pragma once
/// Lowering traced programs to ONNX programs, and writing these as the bytes of a file.
#include "ferrite/exchange/emit/export_program.h"
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/onnx_export.h"

namespace ferrite::exchange::detail {

/// Name of the instruction that becomes an initialiser of the model instead of a node.
inline constexpr std::string_view kInitializer = "initializer";

/// Lowers a graph to an ONNX program. Throws as `to_onnx`; `options.dynamic` is ignored.
ExportProgram onnx_program(const Graph& graph, const onnx::ExportOptions& options);

/// Merges the programs of one function, one for each of the sizes of `extents`. Throws ExportError where they differ in
/// what no arithmetic on the extents gives.
ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const onnx::ExportOptions& options);

/// Returns the bytes of a model whose graph is called `name`: opset 17, IR version 8. Values get their names here:
/// those that a caller chose, else those of their nodes with the path of the layer. Throws ExportError for more than
/// the 2 GiB that a message may have.
std::string onnx_bytes(const ExportProgram& program, const std::string& name);

}  // namespace ferrite::exchange::detail
