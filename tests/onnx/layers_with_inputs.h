#pragma once
/// A layer of every kind with an input that it takes.
#include <memory>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/tensor.h"

namespace onnx_test {

struct LayerWithInput {
  std::string name;
  std::shared_ptr<ferrite::nn::Layer> layer;  ///< in evaluation
  ferrite::Tensor x;                          ///< the first axis is the batch

  ferrite::Tensor operator()(const ferrite::Tensor& in) const;
};

/// Those of conformance::layer_examples. Throws where one takes no input that is known here.
std::vector<LayerWithInput> layers_with_inputs();

/// The same layer's input with another batch.
ferrite::Tensor with_batch(const ferrite::Tensor& x, std::int64_t batch);

}  // namespace onnx_test
