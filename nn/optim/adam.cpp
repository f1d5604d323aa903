#include "ferrite/nn/optim/adam.h"

#include <cmath>

namespace ferrite::nn {
namespace {

constexpr double kDecoupledDecay = 1e-2;

void check(const AdamOptions& o, double weight_decay) {
  const auto outside = [](double beta) { return !(beta >= 0 && beta < 1); };
  if (outside(o.beta1) || outside(o.beta2))
    throw ValueError("adam: betas must lie in [0, 1), got " + std::to_string(o.beta1) + " and " +
                     std::to_string(o.beta2));
  if (!(o.epsilon >= 0) || !(weight_decay >= 0))
    throw ValueError("adam: epsilon and weight_decay must not be negative, got " + std::to_string(o.epsilon) + " and " +
                     std::to_string(weight_decay));
}

}  // namespace

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite),
      options_(options),
      decoupled_(decoupled),
      weight_decay_(options.weight_decay.value_or(decoupled ? kDecoupledDecay : 0)) {
  check(options, weight_decay_);
  mean_ = states_like_parameters("exp_avg");
  square_ = states_like_parameters("exp_avg_sq");
  steps_ = scalar_state("step", 0);
}

void Adam::begin() {
  const Tensor t = steps_.value() + 1;
  steps_.assign(t);
  correction1_ = 1 - pow(options_.beta1, t);
  correction2_ = 1 - pow(options_.beta2, t);
}

void Adam::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const Parameter& p = parameters()[i];
  const Dtype dtype = p.dtype();
  Tensor w = p.value();
  Tensor g = grad;
  if (weight_decay_ > 0 && decoupled_) w = w - (rate * weight_decay_) * w;
  if (weight_decay_ > 0 && !decoupled_) g = g + weight_decay_ * w;
  const Tensor m = options_.beta1 * mean_[i].value() + (1 - options_.beta1) * g;
  const Tensor v = options_.beta2 * square_[i].value() + (1 - options_.beta2) * square(g);
  mean_[i].assign(m);
  square_[i].assign(v);
  const Tensor denominator = sqrt(v) / sqrt(cast(correction2_, dtype)) + options_.epsilon;
  p.assign(w - (rate / cast(correction1_, dtype)) * (m / denominator));
}

}  // namespace ferrite::nn
