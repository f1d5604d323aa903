/// The activation with learned weights: Prelu.
#include "ferrite/nn/layers/activations.h"

#include "ferrite/tensor/shapes.h"

namespace ferrite::nn {

Prelu::Prelu(const PreluOptions& o, const Init& init) : LayerOf(o, init) {
  if (o.num_parameters < 1)
    throw ValueError("prelu: there must be parameters, got " + std::to_string(o.num_parameters));
  weight = parameter("weight", {o.num_parameters}, init::constant(o.init), init);
}

StepInput Prelu::step_input() const {
  if (options().num_parameters > 1) return {options().num_parameters, weight.dtype()};
  return {0, weight.dtype(), true};
}

Tensor Prelu::forward(const Tensor& x, const Context&) const {
  if (!options().channels_last || options().num_parameters == 1 || x.rank() < 3) return prelu(x, weight);
  return movedim(prelu(movedim(x, {-1}, {1}), weight), {1}, {-1});
}

template class LayerOf<Prelu, PreluOptions>;
template class LayerOf<Elu, AlphaOptions>;
template class LayerOf<Celu, AlphaOptions>;
template class LayerOf<LeakyRelu, SlopeOptions>;
template class LayerOf<Hardtanh, BoundsOptions>;
template class LayerOf<Softshrink, LambdaOptions>;
template class LayerOf<Hardshrink, LambdaOptions>;
template class LayerOf<Threshold, ThresholdOptions>;
template class LayerOf<Glu, AxisOptions>;

}  // namespace ferrite::nn
