/// Lion.
#include "ferrite/nn/optim/lion.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

LionOptions checked(const LionOptions& o) {
  detail::check_below_one("lion", "beta1", o.beta1);
  detail::check_below_one("lion", "beta2", o.beta2);
  ferrite::detail::check_not_negative("lion: weight_decay", {o.weight_decay});
  return o;
}

}  // namespace

Lion::Lion(std::vector<Parameter> parameters, const LionOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Lion::add_group(std::vector<Parameter> parameters, const LionOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Lion::prepare(const LionOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::lion,
                    .decay = detail::decay_of(options.weight_decay, true),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.beta2, 1 - options.beta2},
                    .numbers = {options.beta1, 1 - options.beta1}};
  declare_momentum(options.beta1);
  add_rule(rule, {states_like_parameters("exp_avg"), {}, {}});
  groups_.push_back({options});
}

std::array<Tensor, 6> Lion::numbers(std::size_t group) {
  auto [beta1, rest1] = first_betas_now(group);
  return {beta1, rest1};
}

std::vector<NamedOption> Lion::options(std::size_t group) const {
  const LionOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
