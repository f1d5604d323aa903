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

struct ExportOptions {
  /// Of the graph in the file. Not empty.
  std::string name = "ferrite";
  /// Names of the graph's inputs and outputs, in order; those that are missing are "input0", "output0", ...
  std::vector<std::string> inputs{}, outputs{};
  /// Variables that the program reads are inputs behind all others, under their names, instead of initialisers.
  bool variables_as_inputs = false;
  /// Variables that the program writes are inputs under their names, so that a caller carries them from run to run;
  /// else they are initialisers, and every run begins with their present values.
  bool states_as_inputs = true;
  /// Axes whose extents stay open. Only where a function is exported, not a graph.
  std::vector<DynamicAxis> dynamic{};
};

/// A traced program as the bytes of an ONNX model: IR version 8, opset 17, the operators of ai.onnx alone.
///
/// Inputs: the graph's, then, as the options say, the variables that it writes and those that it only reads, under
/// their names. Outputs: the graph's, then what the program writes to variables, named `<name>.next`. All other
/// variables are initialisers that keep their names, constants are nodes Constant; layers give their paths to the names
/// of nodes. What no result depends on is left out. Recurrent sequences of f32 without resets and projections are nodes
/// GRU, LSTM and RNN (layout 0, linear_before_reset as the layer has it), scans are nodes Scan. docs/onnx-export.md
/// says what becomes of each operation.
///
/// Not the same as here: an index out of range is an error of the runtime's own; sums are taken in an order of the
/// runtime's, so that values agree to rounding, not to the bit; what ReduceMax, ArgMax, MaxPool and TopK do with NaN is
/// the runtime's matter.
///
/// Throws ExportError for an operation that is listed in `onnx_refusals` or that has no lowering, and for a model of
/// more than 2 GiB; ValueError for options that do not fit the graph; TraceError for a graph that is not valid.
std::string to_onnx(const Graph& graph, const ExportOptions& options = {});

/// Traces a function and exports it. With dynamic axes it is traced at several extents: what differs between these
/// programs becomes arithmetic on the extents in the file, and has to agree with all of them: extents from a little
/// more than those of `inputs` to several hundred. A function that does something else at small ones is not seen to,
/// but for what a model that was read computes from extents. Throws ExportError, naming the node, where a program has
/// an extent fixed in another way, ValueError for an axis that the inputs do not have.
std::string to_onnx(const std::function<Tensors(const Tensors&)>& f, std::span<const Spec> inputs,
                    const ExportOptions& options = {});

/// The same into a file: readers see the old contents or the new. Throws IoError where it cannot be written.
void write_onnx(const std::filesystem::path& path, const Graph& graph, const ExportOptions& options = {});
void write_onnx(const std::filesystem::path& path, const std::function<Tensors(const Tensors&)>& f,
                std::span<const Spec> inputs, const ExportOptions& options = {});

/// All operations that ONNX cannot hold.
std::span<const exchange::ExportRefusal> onnx_refusals();

/// Whether `to_onnx` takes an operation.
bool has_onnx(const Primitive& op);

}  // namespace ferrite::onnx
