#pragma once
/// Traced programs as ONNX programs, and those as the bytes of a file.
#include "ferrite/exchange/emit/export_program.h"
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/onnx_export.h"

namespace ferrite::exchange::detail {

/// The instruction that is a variable of the model and no node.
inline constexpr std::string_view kInitializer = "initializer";

/// Throws as `to_onnx`; `options.dynamic` is not looked at.
ExportProgram onnx_program(const Graph& graph, const onnx::ExportOptions& options);

/// Programs of one function, one for each of the sizes of `extents`, as one. Throws ExportError where they differ in
/// what no arithmetic on the extents gives.
ExportProgram merged(const std::vector<ExportProgram>& programs, const Extents& extents,
                     const onnx::ExportOptions& options);

/// The bytes of a model with a graph of that name: opset 17, IR version 8. Values get their names here: those that a
/// caller chose, else that of their node with the layer to which it belongs. Throws ExportError for more than the 2 GiB
/// that a message may have.
std::string onnx_bytes(const ExportProgram& program, const std::string& name);

}  // namespace ferrite::exchange::detail
