#pragma once
/// Programs with inputs and the library's own results, which other implementations of StableHLO and ONNX are compared
/// with. Every operation is among them, with its own samples.
#include <string>
#include <vector>

#include "ferrite/compile/graph.h"
#include "ferrite/exchange/stablehlo.h"
#include "ferrite/nn/operations.h"
#include "ferrite/tensor/primitive.h"

namespace exchange_test {

struct ProgramCase {
  std::string name;
  ferrite::Graph graph;
  ferrite::exchange::StablehloOptions options{};  ///< options for writing it as StableHLO
  ferrite::Tensors arguments;                     ///< inputs, then the variables that it reads
  ferrite::Tensors results;
  double tolerance = 0;  ///< largest |a - b| / max(1, |b|) of an element
};

/// A function that is exported with open extents, and a run of it at other extents.
struct OpenCase {
  ProgramCase run;  ///< the run, without a graph
  std::function<ferrite::Tensors(const ferrite::Tensors&)> f;
  std::vector<ferrite::Spec> specs;
  std::vector<ferrite::exchange::DynamicAxis> axes;
  ferrite::exchange::ScanExport scan = ferrite::exchange::ScanExport::as_while;
};

/// Returns networks, gradients, training steps and a step of a stream, at several extents.
std::vector<OpenCase> open_cases();

/// Returns strided windows, interpolation and scatters at extents that the strides do not divide.
std::vector<OpenCase> open_window_cases();

/// Returns layers of every kind that can have their batch open, f32; those on sequences also with any number of steps.
std::vector<OpenCase> layers_with_open_batch();
std::vector<OpenCase> layers_with_open_time();
std::vector<OpenCase> open_layer_cases();

/// Returns a case as StableHLO, with its variables as arguments.
std::string written(const OpenCase& c, ferrite::exchange::DynamicForms forms);

/// Returns the operations of tensors and of layers.
inline std::vector<const ferrite::Primitive*> all_operations() {
  return ferrite::detail::joined({ferrite::primitives(), ferrite::nn::operations()});
}

/// Returns the samples of one operation as cases.
std::vector<ProgramCase> operation_cases(const ferrite::Primitive& op);

/// Returns GRUs and training steps.
std::vector<ProgramCase> recurrent_cases();

/// Returns other layers, causal convolutions and attention, and their gradients.
std::vector<ProgramCase> layer_cases();

/// Returns scans and their gradients, as loops and step by step.
std::vector<ProgramCase> scan_cases();

/// Returns constants of every dtype, and the options of StableHLO.
std::vector<ProgramCase> option_cases();

/// Returns a case of a function and the arguments with which it is traced and called.
ProgramCase case_of(const std::string& name, const std::function<ferrite::Tensors(const ferrite::Tensors&)>& f,
                    const ferrite::Tensors& in, double tolerance);

}  // namespace exchange_test
