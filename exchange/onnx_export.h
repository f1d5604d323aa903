#pragma once
/// Export of traced programs as ONNX files.
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/exchange/dynamic_axis.h"
#include "ferrite/exchange/export_error.h"

namespace ferrite::onnx {

using exchange::DynamicAxis;
using exchange::ExportError;

/// Options of the ONNX export: names, what becomes of variables, and open extents.
struct ExportOptions {
  /// Name of the graph in the file. Not empty.
  std::string name = "ferrite";
  /// Names of the graph's inputs and outputs, in order; where there are too few, "input0", "output0", ... follow.
  std::vector<std::string> inputs{}, outputs{};
  /// Makes the variables that the program only reads inputs under their names, after all others, instead of
  /// initialisers.
  bool variables_as_inputs = false;
  /// Makes the variables that the program writes inputs under their names, so that a caller carries them from run to
  /// run. Otherwise they are initialisers, and every run starts with their present values.
  bool states_as_inputs = true;
  /// Axes whose extents stay open. Only for the export of a function, not of a graph.
  std::vector<DynamicAxis> dynamic{};
};

/// Returns a traced program as the bytes of an ONNX model: IR version 8, opset 17, only operators of ai.onnx.
///
/// Inputs: the graph's, then, as the options say, the variables that it writes and those that it only reads, under
/// their names. Outputs: the graph's, then the new values of the variables that the program writes, named
/// `<name>.next`. All other variables are initialisers that keep their names, constants are Constant nodes; the names
/// of nodes contain the paths of their layers. Nodes that no result depends on are left out. Recurrent sequences of f32
/// with neither resets nor projections become GRU, LSTM and RNN nodes (layout 0, linear_before_reset as the layer has
/// it), scans become Scan nodes. docs/onnx-operations.md says what becomes of each operation.
///
/// Differences: an index out of range raises the runtime's own error; the runtime chooses the order of sums, so that
/// values agree to rounding, not to the bit; the runtime also decides what ReduceMax, ArgMax, MaxPool and TopK do with
/// NaN.
///
/// Throws ExportError for an operation that is listed in `onnx_refusals` or that has no lowering, and for a model of
/// more than 2 GiB; ValueError for options that do not fit the graph; TraceError for a graph that is not valid.
std::string to_onnx(const Graph& graph, const ExportOptions& options = {});

/// Traces a function and exports it as an ONNX model. With dynamic axes it is traced at several extents, from a little
/// more than those of `inputs` to several hundred: numbers that differ between these programs become arithmetic on the
/// extents in the file, which has to agree with all of them. The function has to behave the same at smaller extents;
/// only for a model read from a file is that checked. Throws as the other form; ExportError, naming the node, where a
/// number that depends on an open extent cannot be expressed in the file; ValueError for an axis that the inputs do not
/// have.
std::string to_onnx(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                    const ExportOptions& options = {});

/// Exports a graph to an ONNX file; an old one is replaced as a whole or not at all. Throws as to_onnx, and IoError
/// where the file cannot be written.
void write_onnx(const std::filesystem::path& path, const Graph& graph, const ExportOptions& options = {});
/// Traces a function and exports it to an ONNX file. Throws as the other form.
void write_onnx(const std::filesystem::path& path, const std::function<Tensors(const Tensors&)>& f,
                std::span<const Spec> inputs, const ExportOptions& options = {});

/// Returns all operations that ONNX cannot express, with reasons.
std::span<const exchange::ExportRefusal> onnx_refusals();

/// Returns whether `to_onnx` can export an operation.
bool has_onnx(const Primitive& op);

}  // namespace ferrite::onnx
