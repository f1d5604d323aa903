/// RMSprop: in operations where it is recorded, else by one sweep with the same bits (sweep_kernel.cpp).
#include "ferrite/nn/optim/rmsprop.h"

#include "ferrite/nn/optim/detail/sweep.h"

namespace ferrite::nn {

RmsProp::RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), options_(options) {
  if (!(options.alpha >= 0 && options.alpha < 1))
    throw ValueError("rmsprop: alpha must lie in [0, 1), got " + std::to_string(options.alpha));
  ferrite::detail::check_not_negative("rmsprop: epsilon, weight_decay and momentum",
                                      {options.epsilon, options.weight_decay, options.momentum});
  detail::SweepStates states{.square = states_like_parameters("square_avg")};
  if (options.momentum > 0) states.velocity = states_like_parameters("momentum_buffer");
  if (options.centered) states.mean = states_like_parameters("grad_avg");
  const detail::SweepRule rule{.kind = detail::SweepKind::rmsprop,
                               .weight_decay = options.weight_decay,
                               .momentum = options.momentum,
                               .alpha = options.alpha,
                               .epsilon = options.epsilon,
                               .centered = options.centered};
  sweeps_ = std::make_unique<detail::Sweeps>(rule, std::move(states));
}

RmsProp::RmsProp(RmsProp&&) noexcept = default;
RmsProp::~RmsProp() = default;

void RmsProp::begin() { sweeps_->begin(); }
void RmsProp::finish() { sweeps_->run(); }

void RmsProp::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const Parameter& p = parameters()[i];
  if (!recorded() && sweeps_->prepare(p, i, grad, rate)) return;
  const auto& [squares, means, velocities] = sweeps_->states();
  const Tensor w = p.value();
  const Tensor g = options_.weight_decay > 0 ? grad + options_.weight_decay * w : grad;
  Tensor variance = options_.alpha * squares[i].value() + (1 - options_.alpha) * square(g);
  squares[i].assign(variance);
  if (options_.centered) {
    const Tensor before = means[i].value();
    const Tensor mean = before + (1 - options_.alpha) * (g - before);
    means[i].assign(mean);
    variance = maximum(variance - square(mean), 0);  // rounding may leave less than 0
  }
  Tensor direction = g / (sqrt(variance) + options_.epsilon);
  if (options_.momentum > 0) {
    direction = options_.momentum * velocities[i].value() + direction;
    velocities[i].assign(direction);
  }
  p.assign(w - rate * direction);
}

}  // namespace ferrite::nn
