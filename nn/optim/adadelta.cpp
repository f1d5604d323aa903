/// Adadelta.
#include "ferrite/nn/optim/adadelta.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

AdadeltaOptions checked(const AdadeltaOptions& o) {
  detail::check_below_one("adadelta", "rho", o.rho);
  ferrite::detail::check_not_negative("adadelta: epsilon and weight_decay", {o.epsilon, o.weight_decay});
  return o;
}

}  // namespace

Adadelta::Adadelta(std::vector<Parameter> parameters, const AdadeltaOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Adadelta::add_group(std::vector<Parameter> parameters, const AdadeltaOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Adadelta::prepare(const AdadeltaOptions& options) {
  detail::Rule rule{.kind = detail::RuleKind::adadelta,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .constants = {options.rho, 1 - options.rho, options.epsilon}};
  auto squares = states_like_parameters("square_avg");
  auto deltas = states_like_parameters("acc_delta");
  add_rule(rule, {std::move(squares), std::move(deltas), {}});
  groups_.push_back({options, element_state("step", 0, Dtype::i64)});
}

std::array<Tensor, 6> Adadelta::numbers(std::size_t group) {
  detail::count_step(groups_[group].steps, updated_now());
  return {};
}

std::vector<NamedOption> Adadelta::options(std::size_t group) const {
  const AdadeltaOptions& o = groups_.at(group).options;
  return {{"rho", o.rho}, {"eps", o.epsilon}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
