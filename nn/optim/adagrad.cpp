/// Adagrad.
#include "ferrite/nn/optim/adagrad.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

AdagradOptions checked(const AdagradOptions& o) {
  ferrite::detail::check_not_negative("adagrad: learning_rate_decay, weight_decay, initial_accumulator and epsilon",
                                      {o.learning_rate_decay, o.weight_decay, o.initial_accumulator, o.epsilon});
  return o;
}

}  // namespace

Adagrad::Adagrad(std::vector<Parameter> parameters, const AdagradOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adagrad::add_group(std::vector<Parameter> parameters, const AdagradOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adagrad::prepare(const AdagradOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adagrad,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.epsilon}};
  add_rule(rule, {states_like_parameters("sum", options.initial_accumulator), {}, {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adagrad::numbers(std::size_t group) {
  const Group& g = groups_[group];
  const Tensor t = detail::count_step(g.steps, updated_now());
  return {rate_now(group) / (1 + (t - 1) * g.options.learning_rate_decay)};
}

std::vector<NamedOption> Adagrad::options(std::size_t group) const {
  const AdagradOptions& o = groups_.at(group).options;
  return {{"lr_decay", o.learning_rate_decay},
          {"eps", o.epsilon},
          {"weight_decay", o.weight_decay},
          {"initial_accumulator_value", o.initial_accumulator},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
