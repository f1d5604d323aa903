/// RMSprop, in operations.
#include "ferrite/nn/optim/rmsprop.h"

namespace ferrite::nn {

RmsProp::RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), options_(options) {
  if (!(options.alpha >= 0 && options.alpha < 1))
    throw ValueError("rmsprop: alpha must lie in [0, 1), got " + std::to_string(options.alpha));
  ferrite::detail::check_not_negative("rmsprop: epsilon, weight_decay and momentum",
                                      {options.epsilon, options.weight_decay, options.momentum});
  square_ = states_like_parameters("square_avg");
  if (options.momentum > 0) velocity_ = states_like_parameters("momentum_buffer");
  if (options.centered) mean_ = states_like_parameters("grad_avg");
}

void RmsProp::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const Parameter& p = parameters()[i];
  const Tensor w = p.value();
  const Tensor g = options_.weight_decay > 0 ? grad + options_.weight_decay * w : grad;
  Tensor variance = options_.alpha * square_[i].value() + (1 - options_.alpha) * square(g);
  square_[i].assign(variance);
  if (options_.centered) {
    const Tensor before = mean_[i].value();
    const Tensor mean = before + (1 - options_.alpha) * (g - before);
    mean_[i].assign(mean);
    variance = maximum(variance - square(mean), 0);  // rounding may leave less than 0
  }
  Tensor direction = g / (sqrt(variance) + options_.epsilon);
  if (options_.momentum > 0) {
    direction = options_.momentum * velocity_[i].value() + direction;
    velocity_[i].assign(direction);
  }
  p.assign(w - rate * direction);
}

}  // namespace ferrite::nn
