#pragma once
/// Programs with inputs and the results that the library itself gives: what other implementations of StableHLO and ONNX
/// are checked against. Every operation is among them, tried on its own samples.
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
  ferrite::exchange::StablehloOptions options{};  ///< where it is written as StableHLO
  ferrite::Tensors arguments;                     ///< inputs, then the variables that it reads
  ferrite::Tensors results;
  double tolerance = 0;  ///< of |a - b| / max(1, |b|), element by element
};

/// A function that is exported with open extents, and a run of it at others.
struct OpenCase {
  ProgramCase run;  ///< without a graph
  std::function<ferrite::Tensors(const ferrite::Tensors&)> f;
  std::vector<ferrite::Spec> specs;
  std::vector<ferrite::exchange::DynamicAxis> axes;
  ferrite::exchange::ScanExport scan = ferrite::exchange::ScanExport::as_while;
};

/// Networks, gradients, training steps and a step of a stream, at several extents.
std::vector<OpenCase> open_cases();

/// Strided windows, interpolation and scatters at extents that the strides do not divide.
std::vector<OpenCase> open_window_cases();

/// Layers of every kind with their batch open, f32; those on sequences with any number of steps, too; and those of them
/// that can stay open.
std::vector<OpenCase> layers_with_open_batch();
std::vector<OpenCase> layers_with_open_time();
std::vector<OpenCase> open_layer_cases();

/// As StableHLO, its variables as arguments.
std::string written(const OpenCase& c, ferrite::exchange::DynamicForms forms);

/// Those of tensors and those of layers.
inline std::vector<const ferrite::Primitive*> all_operations() {
  return ferrite::detail::joined({ferrite::primitives(), ferrite::nn::operations()});
}

/// The samples of one operation.
std::vector<ProgramCase> operation_cases(const ferrite::Primitive& op);

/// GRUs and training steps.
std::vector<ProgramCase> recurrent_cases();

/// Other layers, causal convolutions and attention, and their gradients.
std::vector<ProgramCase> layer_cases();

/// Scans and their gradients, as loops and step by step.
std::vector<ProgramCase> scan_cases();

/// Constants of every dtype, and the options of StableHLO.
std::vector<ProgramCase> option_cases();

/// A function and the arguments it is traced and called with.
ProgramCase case_of(const std::string& name, const std::function<ferrite::Tensors(const ferrite::Tensors&)>& f,
                    const ferrite::Tensors& in, double tolerance);

}  // namespace exchange_test
