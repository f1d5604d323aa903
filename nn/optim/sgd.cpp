/// Stochastic gradient descent as a rule: its options, its velocity and the numbers of an update.
#include "ferrite/nn/optim/sgd.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

SgdOptions checked(const SgdOptions& o) {
  ferrite::detail::check_not_negative("sgd: momentum and weight_decay", {o.momentum, o.weight_decay});
  if (!(o.dampening >= 0 && o.dampening <= 1))
    throw ValueError("sgd: dampening must lie in [0, 1], got " + Scalar(o.dampening).str());
  if (o.nesterov && o.momentum == 0) throw ValueError("sgd: nesterov needs a momentum");
  if (o.nesterov && o.dampening > 0)
    throw ValueError("sgd: nesterov needs a dampening of 0, got " + Scalar(o.dampening).str());
  return o;
}

}  // namespace

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : RuleOptimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite) {
  prepare(options);
}

void Sgd::add_group(std::vector<Parameter> parameters, const SgdOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Sgd::prepare(const SgdOptions& options) {
  const detail::Rule rule{.kind = detail::RuleKind::sgd,
                          .decay = detail::decay_of(options.weight_decay, false),
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .nesterov = options.nesterov,
                          .damped = options.momentum > 0 && options.dampening > 0,
                          .numbers = {options.momentum}};
  std::vector<State> velocity;  // from zeros, the first one is g, as PyTorch sets it
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    velocity = states_like_parameters("momentum");
  }
  add_rule(rule, {std::move(velocity), {}, {}});
  Group& g = groups_.emplace_back();
  g.options = options;
  if (options.momentum > 0 && options.dampening > 0) g.steps = element_state("step", 0, Dtype::i64);
}

std::array<Tensor, 6> Sgd::numbers(std::size_t group) {
  const Group& g = groups_[group];
  Tensor momentum, share;
  if (cycles(group)) momentum = momentum_now(group);
  if (g.steps.defined())
    share = where(detail::count_step(g.steps, updated_now()) > 1, full({}, 1 - g.options.dampening, Dtype::f64),
                  full({}, 1, Dtype::f64));
  return {momentum, share};
}

std::vector<NamedOption> Sgd::options(std::size_t group) const {
  const SgdOptions& o = groups_.at(group).options;
  return {{"momentum", cycles(group) ? momentum(group) : o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov},
          {"maximize", o.maximize}};
}

}  // namespace ferrite::nn
