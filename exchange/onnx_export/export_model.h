#pragma once
/// A program as the parts of a model.
#include "ferrite/exchange/emit/extents.h"
#include "ferrite/exchange/onnx_export.h"
#include "ferrite/exchange/onnx_export/export_parts.h"

namespace ferrite::onnx::detail {

/// Throws as `to_onnx`; `options.dynamic` is not looked at.
GraphParts parts_of(const Graph& graph, const ExportOptions& options);

/// Programs of one function, one for each of the sizes of `extents`, as one. Throws ExportError where they differ in
/// what no arithmetic on the extents gives.
GraphParts merged(std::vector<GraphParts> programs, const exchange::detail::Extents& extents,
                  const std::vector<DynamicAxis>& axes);

}  // namespace ferrite::onnx::detail
