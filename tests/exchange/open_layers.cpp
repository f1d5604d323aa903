// A layer of every kind with its batch left open.
#include "exchange/program_cases.h"
#include "ferrite/compile/tracer.h"
#include "onnx/layers_with_inputs.h"

namespace exchange_test {

std::vector<OpenCase> layers_with_open_batch() {
  std::vector<OpenCase> list;
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs()) {
    const auto f = [layer](const ferrite::Tensors& in) -> ferrite::Tensors { return {layer(in[0])}; };
    const ferrite::Tensor in = onnx_test::with_batch(layer.x, 3);
    OpenCase c{{layer.name, {}, {}, {in}, {layer(in)}, 1e-5}, f, {layer.x.spec()}, {{.axis = 0, .name = "batch"}}};
    const ferrite::Graph graph = ferrite::trace(f, c.specs);
    for (const auto& r : graph.reads) c.run.arguments.push_back(graph.variables[r.variable].peek());
    list.push_back(std::move(c));
  }
  return list;
}

std::vector<OpenCase> open_layer_cases() {
  std::vector<OpenCase> list;
  for (OpenCase& c : layers_with_open_batch())
    if (!c.run.name.ends_with("Stft")) list.push_back(std::move(c));
  return list;
}

}  // namespace exchange_test
