/// Standardising by a data set.
#include "ferrite/train/adapt.h"

namespace ferrite::train {

void adapt(const nn::Standardize& layer, const Dataset& training, std::size_t field) {
  if (training.size() == 0) throw ValueError("adapt: the data set is empty");
  if (field >= training.fields().size())
    throw ValueError("adapt: there is no field " + std::to_string(field) + ", examples have " +
                     std::to_string(training.fields().size()));
  const std::int64_t D = layer.options().features;
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < training.size(); ++i) {
    const Tensor x = training[i][field];
    if (x.rank() < 1 || x.shape()[-1] != D)
      throw ShapeError("adapt: example " + std::to_string(i) + " is " + x.spec().str() + ", the layer has " +
                       std::to_string(D) + " features");
    rows.push_back(reshape(x, {x.numel() / D, D}));
  }
  layer.adapt(concat(rows, 0));
}

void adapt(const nn::Sequential& net, const Dataset& training, std::size_t field) {
  if (net.size() == 0) throw ValueError("adapt: the net has no layers");
  const nn::Layer& first = net[0];
  if (const auto* const layer = dynamic_cast<const nn::Standardize*>(&first)) return adapt(*layer, training, field);
  if (const auto* const chain = dynamic_cast<const nn::Sequential*>(&first);
      chain && dynamic_cast<const nn::Residual*>(&first) == nullptr)
    return adapt(*chain, training, field);
  throw ValueError("adapt: the net begins with " + first.kind() +
                   ", not with standardize; give the layer itself and the data that reaches it");
}

}  // namespace ferrite::train
