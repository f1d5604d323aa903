#include "ferrite/nn/sequential.h"

namespace ferrite::nn {

void Sequential::add(std::string name, std::unique_ptr<Layer> layer) {
  if (!layer) throw ValueError("sequential: the layer '" + name + "' is null");
  if (name.empty()) throw ValueError("sequential: a layer needs a name");
  for (const Item& item : layers_)
    if (item.name == name) throw ValueError("sequential: the name '" + name + "' is taken");
  adopt(name, *layer);
  layers_.push_back({std::move(name), std::move(layer)});
}

Tensor Sequential::forward(const Tensor& x, const Context& context) const {
  Tensor y = x;
  for (const Item& item : layers_) y = item.layer->forward(y, context);
  return y;
}

void Sequential::clone_into(Sequential& to) const {
  for (const Item& item : layers_) to.add(item.name, item.layer->clone());
  to.copy_modes(*this);
}

std::unique_ptr<Layer> Sequential::clone() const {
  auto copy = std::make_unique<Sequential>();
  clone_into(*copy);
  return copy;
}

Tensor Residual::forward(const Tensor& x, const Context& context) const {
  const Tensor y = Sequential::forward(x, context);
  if (y.shape() != x.shape())
    throw ShapeError("residual: the chain changes the shape: " + x.shape().str() + " to " + y.shape().str());
  return x + y;
}

std::unique_ptr<Layer> Residual::clone() const {
  auto copy = std::make_unique<Residual>();
  clone_into(*copy);
  return copy;
}

}  // namespace ferrite::nn
