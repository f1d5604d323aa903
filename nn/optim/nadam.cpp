/// NAdam.
#include "ferrite/nn/optim/nadam.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

NAdamOptions checked(const NAdamOptions& o) {
  detail::check_below_one("nadam", "beta1", o.beta1);
  detail::check_below_one("nadam", "beta2", o.beta2);
  ferrite::detail::check_not_negative("nadam: epsilon, weight_decay and momentum_decay",
                                      {o.epsilon, o.weight_decay, o.momentum_decay});
  return o;
}

}  // namespace

NAdam::NAdam(std::vector<Parameter> parameters, const NAdamOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void NAdam::add_group(std::vector<Parameter> parameters, const NAdamOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void NAdam::prepare(const NAdamOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::nadam,
                    .decay = detail::decay_of(options.weight_decay, options.decoupled_weight_decay),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto square = states_like_parameters("exp_avg_sq");
  add_rule(rule, {std::move(mean), std::move(square), {}});
  const State steps = element_state("step", 0, Dtype::i64);
  groups_.push_back({options, steps, element_state("mu_product", 1, Dtype::f64)});
}

std::array<Tensor, 6> NAdam::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensor& updated = updated_now();
  const Tensor t = detail::count_step(g.steps, updated), rate = rate_now(group), beta1 = momentum_now(group);
  const auto mu = [&](const Tensor& step) { return beta1 * (1 - 0.5 * pow(0.96, step * g.options.momentum_decay)); };
  const Tensor now = mu(t), next = mu(t + 1), before = g.product.value();
  const Tensor product = updated.defined() ? where(updated > 0, before * now, before) : before * now;
  g.product.assign(product);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate * (1 - now) / (1 - product), rate * next / (1 - product * next),
          sqrt(detail::correction(g.options.beta2, t))};
}

std::vector<NamedOption> NAdam::options(std::size_t group) const {
  const NAdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"momentum_decay", o.momentum_decay},
          {"decoupled_weight_decay", o.decoupled_weight_decay},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
