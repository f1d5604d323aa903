/// RAdam.
#include "ferrite/nn/optim/radam.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

RAdamOptions checked(const RAdamOptions& o) {
  detail::check_below_one("radam", "beta1", o.beta1);
  detail::check_below_one("radam", "beta2", o.beta2);
  ferrite::detail::check_not_negative("radam: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

RAdam::RAdam(std::vector<Parameter> parameters, const RAdamOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void RAdam::add_group(std::vector<Parameter> parameters, const RAdamOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void RAdam::prepare(const RAdamOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::radam,
                    .decay = detail::decay_of(options.weight_decay, options.decoupled_weight_decay),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto square = states_like_parameters("exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> RAdam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const double beta2 = g.options.beta2, most = 2 / (1 - beta2) - 1;
  const Tensor t = detail::count_step(g.steps, updated_now()), rate = rate_now(group), beta1 = momentum_now(group);
  const Tensor power = pow(beta2, t), correction2 = 1 - power;
  const Tensor length = most - 2 * t * power / correction2, tractable = length > 5;
  const Tensor ratio = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
  const Tensor one = full({}, 1, Dtype::f64);
  const Tensor rectified = where(tractable, sqrt(where(tractable, ratio, one)) * sqrt(correction2), one);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate / detail::correction(beta1, t) * rectified, cast(tractable, Dtype::f64)};
}

std::vector<NamedOption> RAdam::options(std::size_t group) const {
  const RAdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize},
          {"decoupled_weight_decay", o.decoupled_weight_decay}};
}

}  // namespace ferrite::nn
