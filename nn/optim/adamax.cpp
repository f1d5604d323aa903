/// Adamax.
#include "ferrite/nn/optim/adamax.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

AdamaxOptions checked(const AdamaxOptions& o) {
  detail::check_below_one("adamax", "beta1", o.beta1);
  detail::check_below_one("adamax", "beta2", o.beta2);
  ferrite::detail::check_not_negative("adamax: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

Adamax::Adamax(std::vector<Parameter> parameters, const AdamaxOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adamax::add_group(std::vector<Parameter> parameters, const AdamaxOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adamax::prepare(const AdamaxOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adamax,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 0, options.epsilon},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  auto mean = states_like_parameters("exp_avg");
  auto largest = states_like_parameters("exp_inf");
  add_rule(rule, {std::move(mean), std::move(largest), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adamax::numbers(std::size_t group) {
  const Tensor t = detail::count_step(groups_[group].steps, updated_now()), beta1 = momentum_now(group);
  const auto [own, rest] = first_betas_now(group);
  return {own, rest, rate_now(group) / detail::correction(beta1, t)};
}

std::vector<NamedOption> Adamax::options(std::size_t group) const {
  const AdamaxOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
