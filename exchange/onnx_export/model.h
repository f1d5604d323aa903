#pragma once
/// A program as the parts of a model.
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/onnx_export/parts.h"

namespace ferrite::onnx::detail {

/// Throws as `to_onnx`; `options.dynamic` is not looked at.
GraphParts parts_of(const Graph& graph, const ExportOptions& options);

/// Programs of one function at several extents as one. `extents`: for each program the extents by name, in the order of
/// `names`. Throws ExportError where they differ in what no arithmetic on the extents gives.
GraphParts merged(std::vector<GraphParts> programs, const std::vector<std::string>& names,
                  const std::vector<Integers>& extents, const std::vector<DynamicAxis>& axes);

}  // namespace ferrite::onnx::detail
