// Programs of a layer of every kind whose batch stays open.
#include "exchange/program_cases.h"
#include "ferrite/compile/tracer.h"
#include "ferrite/tensor/random.h"
#include "onnx/layers_with_inputs.h"

namespace exchange_test {
namespace {

using ferrite::Shape;
using ferrite::Tensor;
using ferrite::Tensors;

OpenCase open_layer(const onnx_test::LayerWithInput& layer, const Tensor& in,
                    std::vector<ferrite::exchange::DynamicAxis> axes) {
  const auto f = [layer](const Tensors& x) -> Tensors { return {layer(x[0])}; };
  OpenCase c{{layer.name, {}, {}, {in}, {layer(in)}, 1e-5}, f, {layer.x.spec()}, std::move(axes)};
  const ferrite::Graph graph = ferrite::trace(f, c.specs);
  for (const auto& r : graph.reads) c.run.arguments.push_back(graph.variables[r.variable].peek());
  return c;
}

}  // namespace

std::vector<OpenCase> layers_with_open_batch() {
  std::vector<OpenCase> list;
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs())
    list.push_back(open_layer(layer, onnx_test::with_batch(layer.x, 3), {{.axis = 0, .name = "batch"}}));
  return list;
}

std::vector<OpenCase> layers_with_open_time() {
  std::vector<OpenCase> list;
  for (const onnx_test::LayerWithInput& layer : onnx_test::layers_with_inputs()) {
    if (layer.x.rank() != 3) continue;
    const Tensor in = ferrite::uniform({3, layer.x.shape()[1] + 2, layer.x.shape()[2]}, {.seed = 9}, -1, 1);
    list.push_back(open_layer(layer, in, {{.axis = 0, .name = "batch"}, {.axis = 1, .name = "time"}}));
    list.back().run.name += ", any time";
  }
  return list;
}

std::vector<OpenCase> open_layer_cases() {
  std::vector<OpenCase> list;
  for (const auto& cases : {layers_with_open_batch(), layers_with_open_time()})
    for (const OpenCase& c : cases) {
      try {
        (void)written(c, ferrite::exchange::DynamicForms::complete);
        list.push_back(c);
      } catch (const ferrite::exchange::ExportError&) {  // another test lists those that are refused
      }
    }
  return list;
}

}  // namespace exchange_test
