/// Stochastic gradient descent with momentum: in operations where it is recorded, else by one sweep with the same bits
/// (sweep_kernel.cpp; with dampening, a momentum that schedules change or an ascent: rules.h).
#include "ferrite/nn/optim/sgd.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/nn/optim/detail/rule_steps.h"
#include "ferrite/nn/optim/detail/sweep.h"
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

struct Sgd::Group {
  SgdOptions options;
  std::unique_ptr<detail::Sweeps> sweeps;
  State steps{};  ///< with dampening: the first update has none
  bool by_rule = false;
};

Sgd::Sgd(std::vector<Parameter> parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite),
      rules_(std::make_unique<detail::RuleSteps>()) {
  prepare(options);
}

void Sgd::add_group(std::vector<Parameter> parameters, const SgdOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void Sgd::prepare(const SgdOptions& options) {
  detail::SweepStates states;
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    states.velocity = states_like_parameters("momentum");
  }
  detail::Rule rule{.kind = detail::RuleKind::sgd,
                    .decay = detail::decay_of(options.weight_decay, false),
                    .weight_decay = options.weight_decay,
                    .maximize = options.maximize,
                    .nesterov = options.nesterov};
  rules_->add(rule, {states.velocity, {}, {}});
  const detail::SweepRule sweep{
      .weight_decay = options.weight_decay, .momentum = options.momentum, .nesterov = options.nesterov};
  Group& g = groups_.emplace_back();
  g.options = options;
  g.sweeps = std::make_unique<detail::Sweeps>(sweep, std::move(states));
  if (options.momentum > 0 && options.dampening > 0) g.steps = element_state("step", 0, Dtype::i64);
}

Sgd::Sgd(Sgd&&) noexcept = default;
Sgd::~Sgd() = default;

void Sgd::begin() {
  rules_->begin();
  for (Group& g : groups_) g.sweeps->begin();
}

void Sgd::begin_group(std::size_t group) {
  Group& g = groups_[group];
  g.by_rule = g.steps.defined() || g.options.maximize || cycles(group);
  if (!g.by_rule) return;
  const Tensor rate = rate_now(group), one = full({}, 1, Dtype::f64);
  Tensor share = one;
  if (g.steps.defined())
    share = where(detail::count_step(g.steps, updated_now()) > 1, full({}, 1 - g.options.dampening, Dtype::f64), one);
  const Tensor momentum = cycles(group) ? momentum_now(group) : full({}, g.options.momentum, Dtype::f64);
  rules_->begin_group(group, rate, {momentum, share, rate});
}

void Sgd::finish() {
  rules_->run();
  for (Group& g : groups_) g.sweeps->run();
}

void Sgd::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const auto [group, place] = place_of(i);
  const Group& g = groups_[group];
  const Parameter& p = parameters()[i];
  if (g.by_rule) return rules_->update(p, group, place, grad, recorded());
  if (!recorded() && g.sweeps->prepare(p, place, grad, rate)) return;
  const std::vector<State>& velocities = g.sweeps->states().velocity;
  const SgdOptions& o = g.options;
  const Tensor w = p.value();
  Tensor direction = o.weight_decay > 0 ? grad + o.weight_decay * w : grad;
  if (o.momentum > 0) {
    // From zeros, the first v is g, as PyTorch sets it.
    const Tensor v = o.momentum * velocities[place].value() + direction;
    velocities[place].assign(v);
    direction = o.nesterov ? direction + o.momentum * v : v;
  }
  p.assign(w - rate * direction);
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
