/// Adam and AdamW as optimisers.
#include "ferrite/nn/optim/adam.h"

#include "ferrite/nn/optim/detail/adam_begin.h"
#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

constexpr double kDecoupledDecay = 1e-2;

void check(const AdamOptions& o, double weight_decay) {
  const auto outside = [](double beta) { return !(beta >= 0 && beta < 1); };
  if (outside(o.beta1) || outside(o.beta2))
    throw ValueError("adam: betas must lie in [0, 1), got " + Scalar(o.beta1).str() + " and " + Scalar(o.beta2).str());
  ferrite::detail::check_not_negative("adam: epsilon and weight_decay", {o.epsilon, weight_decay});
}

/// The options with the decay that they leave to the optimiser.
AdamOptions resolved(AdamOptions o, bool decoupled) {
  if (!o.weight_decay) o.weight_decay = decoupled ? kDecoupledDecay : 0;
  check(o, *o.weight_decay);
  return o;
}

}  // namespace

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : RuleOptimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite), decoupled_(decoupled) {
  prepare(resolved(options, decoupled));
}

void Adam::add_group(std::vector<Parameter> parameters, const AdamOptions& options) {
  const AdamOptions o = resolved(options, decoupled_);
  add_parameters(std::move(parameters), o.learning_rate);
  prepare(o);
}

void Adam::prepare(const AdamOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::adam,
                          .decay = detail::decay_of(*options.weight_decay, decoupled_),
                          .weight_decay = *options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                          .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg"), square = states_like_parameters("exp_avg_sq");
  std::vector<State> largest;
  if (options.amsgrad) largest = states_like_parameters("max_exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), std::move(largest)});
  groups_.push_back({options, detail::AdamBetas{options.beta1, options.beta2}, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensors begun = detail::begin_adam(g.steps.value(), updated_now(), g.betas);
  g.steps.assign(begun[0]);
  auto [beta1, rest1] = first_betas_now(group);
  const Tensor correction1 = beta1.defined() ? detail::correction(beta1, cast(begun[0], Dtype::f64)) : begun[1];
  return {beta1, rest1, correction1, begun[2]};
}

std::vector<NamedOption> Adam::options(std::size_t group) const {
  const AdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", *o.weight_decay},
          {"amsgrad", o.amsgrad},
          {"maximize", o.maximize},
          {"decoupled_weight_decay", decoupled_}};
}

}  // namespace ferrite::nn
