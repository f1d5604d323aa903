/// Stochastic gradient descent with momentum: in operations where it is recorded, else by one sweep with the same bits
/// (sweep_kernel.cpp).
#include "ferrite/nn/optim/sgd.h"

#include "ferrite/nn/optim/detail/sweep.h"

namespace ferrite::nn {

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), options_(options) {
  ferrite::detail::check_not_negative("sgd: momentum and weight_decay", {options.momentum, options.weight_decay});
  if (options.nesterov && options.momentum == 0) throw ValueError("sgd: nesterov needs a momentum");
  detail::SweepStates states;
  if (options.momentum > 0) states.velocity = states_like_parameters("momentum");
  const detail::SweepRule rule{
      .weight_decay = options.weight_decay, .momentum = options.momentum, .nesterov = options.nesterov};
  sweeps_ = std::make_unique<detail::Sweeps>(rule, std::move(states));
}

Sgd::Sgd(Sgd&&) noexcept = default;
Sgd::~Sgd() = default;

void Sgd::begin() { sweeps_->begin(); }
void Sgd::finish() { sweeps_->run(); }

void Sgd::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const Parameter& p = parameters()[i];
  if (!recorded() && sweeps_->prepare(p, i, grad, rate)) return;
  const std::vector<State>& velocities = sweeps_->states().velocity;
  const Tensor w = p.value();
  Tensor direction = options_.weight_decay > 0 ? grad + options_.weight_decay * w : grad;
  if (options_.momentum > 0) {
    // From zeros, the first v is g, as PyTorch sets it.
    const Tensor v = options_.momentum * velocities[i].value() + direction;
    velocities[i].assign(v);
    direction = options_.nesterov ? direction + options_.momentum * v : v;
  }
  p.assign(w - rate * direction);
}

}  // namespace ferrite::nn
