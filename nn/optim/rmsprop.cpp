/// RMSprop as a rule: its options, its states and the numbers of an update.
#include "ferrite/nn/optim/rmsprop.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

RmsPropOptions checked(const RmsPropOptions& o) {
  detail::check_below_one("rmsprop", "alpha", o.alpha);
  ferrite::detail::check_not_negative("rmsprop: epsilon, weight_decay and momentum",
                                      {o.epsilon, o.weight_decay, o.momentum});
  return o;
}

}  // namespace

RmsProp::RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void RmsProp::add_group(std::vector<Parameter> parameters, const RmsPropOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void RmsProp::prepare(const RmsPropOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::rmsprop,
                          .decay = detail::decay_of(options.weight_decay, false),
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.alpha, 1 - options.alpha, options.epsilon},
                          .numbers = {options.momentum}};
  std::vector<State> square = states_like_parameters("square_avg"), mean, velocity;
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    velocity = states_like_parameters("momentum_buffer");
  }
  if (options.centered) mean = states_like_parameters("grad_avg");
  add_rule(rule, {std::move(square), std::move(mean), std::move(velocity)});
  groups_.push_back({options});
}

std::array<Tensor, 6> RmsProp::numbers(std::size_t group) { return {cycles(group) ? momentum_now(group) : Tensor()}; }

std::vector<NamedOption> RmsProp::options(std::size_t group) const {
  const RmsPropOptions& o = groups_.at(group).options;
  return {{"momentum", cycles(group) ? momentum(group) : o.momentum},
          {"alpha", o.alpha},
          {"eps", o.epsilon},
          {"centered", o.centered},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
