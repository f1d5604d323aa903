/// Standardising the inputs of a net by a data set.
#include "ferrite/train/adapt.h"

#include "ferrite/nn/layers/branches.h"

namespace ferrite::train {
namespace {

using Standardizes = std::vector<const nn::Standardize*>;

/// Adds the nn::Standardize layers in a layer, itself included, to `found`.
void collect(const nn::Layer& layer, Standardizes& found);

template <class Parts>
void collect_parts(const Parts& parts, Standardizes& found) {
  for (std::size_t i = 0; i < parts.size(); ++i) collect(parts[i], found);
}

void collect(const nn::Layer& layer, Standardizes& found) {
  if (const auto* const one = dynamic_cast<const nn::Standardize*>(&layer)) found.push_back(one);
  if (const auto* const chain = dynamic_cast<const nn::Sequential*>(&layer)) collect_parts(*chain, found);
  if (const auto* const branches = dynamic_cast<const nn::Branches*>(&layer)) collect_parts(*branches, found);
}

Standardizes all_in(const nn::Sequential& net) {
  Standardizes found;
  collect(net, found);
  return found;
}

/// Returns the layer that the input reaches first, also within chains, but not within residuals, which add to it.
const nn::Layer& first_of(const nn::Sequential& net) {
  const nn::Layer& first = net[0];
  const auto* const chain = dynamic_cast<const nn::Sequential*>(&first);
  if (!chain || chain->size() == 0 || dynamic_cast<const nn::Residual*>(&first)) return first;
  return first_of(*chain);
}

}  // namespace

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
  const nn::Layer& first = first_of(net);
  const auto* const layer = dynamic_cast<const nn::Standardize*>(&first);
  if (!layer)
    throw ValueError("adapt: the net begins with " + first.kind() +
                     ", not with standardize; give the layer itself and the data that reaches it");
  for (const nn::Standardize* const other : all_in(net))
    if (other != layer)
      throw ValueError("adapt: the standardize '" + other->path() +
                       "' comes later, after layers that change the data; give each layer itself and the "
                       "data that reaches it");
  adapt(*layer, training, field);
}

bool standardizes(const nn::Sequential& net) { return !all_in(net).empty(); }

}  // namespace ferrite::train
