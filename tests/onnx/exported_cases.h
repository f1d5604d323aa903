#pragma once
/// Helpers of the tests of exporting: the programs that are written, and how.
#include "exchange/program_cases.h"
#include "ferrite/exchange/onnx_export.h"
#include "onnx/layers_with_inputs.h"

namespace onnx_test {

using exchange_test::ProgramCase;

/// Returns whether a case is about the bits of integers, which came with opset 18.
inline bool has_integer_bits(const ProgramCase& c) {
  return c.name.starts_with("bitwise_") && c.graph.values[c.graph.inputs[0]].dtype != ferrite::Dtype::boolean;
}

/// Returns the whole programs, once if they differ only in forms of StableHLO.
inline std::vector<ProgramCase> whole_programs() {
  std::vector<ProgramCase> all;
  for (const auto& list : {exchange_test::option_cases(), exchange_test::recurrent_cases(),
                           exchange_test::layer_cases(), exchange_test::scan_cases()})
    for (const ProgramCase& c : list)
      if (!c.options.constants_as_arguments && c.options.scan == ferrite::exchange::ScanExport::as_while)
        all.push_back(c);
  return all;
}

/// Returns a case as ONNX, with its arguments as inputs.
inline std::string written(const ProgramCase& c) {
  return ferrite::onnx::to_onnx(c.graph, {.variables_as_inputs = !c.options.inline_variables});
}

/// Returns a layer as ONNX, with its batch left open.
inline std::string written(const LayerWithInput& layer) {
  const auto f = [&](const ferrite::Tensors& in) -> ferrite::Tensors { return {layer(in[0])}; };
  const std::vector<ferrite::Spec> specs{layer.x.spec()};
  return ferrite::onnx::to_onnx(f, specs, {.dynamic = {{.name = "batch"}}});
}

}  // namespace onnx_test
