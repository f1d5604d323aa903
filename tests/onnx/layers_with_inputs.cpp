// Finds an input for each layer: the first of several shapes that it accepts.
#include "onnx/layers_with_inputs.h"

#include "conformance/layer_examples.h"
#include "ferrite/nn/layers/transformer.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"

namespace onnx_test {
namespace {

using namespace ferrite;

/// Returns sequences, images and tokens.
std::vector<Tensor> candidates() {
  std::vector<Tensor> all;
  for (const std::int64_t width : {3, 4, 8, 2, 1, 10})
    for (const Shape& s : {Shape{2, 7, width}, Shape{2, width, 9, 8}, Shape{2, width}})
      all.push_back(uniform(s, {.seed = 5}, -1, 1));
  all.push_back(uniform({2, 24, 1}, {.seed = 5}, -1, 1));
  all.push_back(cast(uniform({2, 7}, {.seed = 6}, 0, 7), Dtype::i64));
  return all;
}

/// Calls a layer; a decoder attends to its input.
Tensor call(const nn::Layer& layer, const Tensor& x) {
  const auto* decoder = dynamic_cast<const nn::TransformerDecoderLayer*>(&layer);
  return decoder ? decoder->decode(x, x) : layer(x);
}

bool takes(const nn::Layer& layer, const Tensor& x) {
  try {
    return call(layer, x).numel() > 0;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<LayerWithInput> layers_with_inputs() {
  std::vector<LayerWithInput> all;
  for (const conformance::LayerSection& section : conformance::layer_examples())
    for (const conformance::LayerExample& e : section.entries) {
      const std::shared_ptr<nn::Layer> layer = e.example();
      layer->draw({.seed = 7});
      layer->eval();
      for (const Tensor& x : candidates()) {
        if (!takes(*layer, x)) continue;
        all.push_back({e.name, layer, x});
        break;
      }
      if (all.empty() || all.back().name != e.name) throw std::runtime_error("no input for " + layer->summary());
    }
  return all;
}

Tensor LayerWithInput::operator()(const Tensor& in) const { return call(*layer, in); }

Tensor with_batch(const Tensor& x, std::int64_t batch) {
  Shape s = x.shape();
  s[0] = batch;
  return is_float(x.dtype()) ? uniform(s, {.seed = 9}, -1, 1) : cast(uniform(s, {.seed = 9}, 0, 7), x.dtype());
}

}  // namespace onnx_test
