#pragma once
/// A layer of every kind with an input that it accepts.
#include <memory>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/tensor.h"

namespace onnx_test {

struct LayerWithInput {
  std::string name;
  std::shared_ptr<ferrite::nn::Layer> layer;  ///< the layer, in evaluation mode
  ferrite::Tensor x;                          ///< input, whose first axis is the batch

  ferrite::Tensor operator()(const ferrite::Tensor& in) const;
};

/// Returns the layers of conformance::layer_examples. Throws if a layer accepts none of the known inputs.
std::vector<LayerWithInput> layers_with_inputs();

/// Returns the input of a layer with another batch.
ferrite::Tensor with_batch(const ferrite::Tensor& x, std::int64_t batch);

}  // namespace onnx_test
