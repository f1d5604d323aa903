#pragma once
/// How each operation is written in ONNX. Pointwise operations whose record names an operation of ONNX with the same
/// operands need nothing more; those with a composition are written as that; all others have a function here, by
/// family.
#include "ferrite/compile/graph.h"
#include "ferrite/exchange/emit/graph_walk.h"
#include "ferrite/exchange/onnx_export/export_builder.h"
#include "ferrite/tensor/attributes.h"

namespace ferrite::onnx::detail {

/// Pointwise operations get all operands, literals among them as constants of rank 0.
using ExportCall = exchange::detail::Application<ExportValue>;

/// Without any results it asks for the composition.
using ExportLowering = exchange::detail::Lowering<GraphBuilder, ExportValue>;
using NamedExportLowering = exchange::detail::NamedLowering<GraphBuilder, ExportValue>;
using ExportFamily = std::span<const NamedExportLowering>;
ExportFamily export_pointwise();
ExportFamily export_math();
ExportFamily export_reductions();
ExportFamily export_views();
ExportFamily export_indexing();
ExportFamily export_creation();
ExportFamily export_windows();
ExportFamily export_running();
ExportFamily export_fourier();
ExportFamily export_recurrent();
ExportFamily export_scan();

/// Whether an operation is written at all.
bool has_lowering(const Primitive& op);

/// Writes the part of a graph that its outputs and writes depend on. `given` are the values of inputs, variables read
/// and, where they have some, constants, by number. Gives the outputs, then what is written to variables. `read` says
/// which outputs are asked for, where not all are; the others may come without a name. Throws ExportError.
ExportValues lower_graph(GraphBuilder& b, const Graph& graph, ExportValues given, const std::vector<bool>& read = {});

/// Traces a function and writes it, applied to these values.
ExportValues lower_traced(GraphBuilder& b, const std::function<Tensors(const Tensors&)>& f, const ExportValues& in,
                          const std::vector<bool>& read = {});

/// What does not fit saturates and NaN gives 0, as in `cast`: ONNX leaves both open.
ExportValue cast_value(GraphBuilder& b, const ExportValue& x, Dtype to);

}  // namespace ferrite::onnx::detail
