/// Stochastic gradient descent with momentum.
#include "ferrite/nn/optim/sgd.h"

namespace ferrite::nn {

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), options_(options) {
  ferrite::detail::check_not_negative("sgd: momentum and weight_decay", {options.momentum, options.weight_decay});
  if (options.nesterov && options.momentum == 0) throw ValueError("sgd: nesterov needs a momentum");
  if (options.momentum > 0) velocity_ = states_like_parameters("momentum");
}

void Sgd::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const Parameter& p = parameters()[i];
  const Tensor w = p.value();
  Tensor direction = options_.weight_decay > 0 ? grad + options_.weight_decay * w : grad;
  if (options_.momentum > 0) {
    // From zeros, the first v is g, as PyTorch sets it.
    const Tensor v = options_.momentum * velocity_[i].value() + direction;
    velocity_[i].assign(v);
    direction = options_.nesterov ? direction + options_.momentum * v : v;
  }
  p.assign(w - rate * direction);
}

}  // namespace ferrite::nn
