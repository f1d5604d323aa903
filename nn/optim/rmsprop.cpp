/// RMSprop: in operations where it is recorded, else by one sweep with the same bits (sweep_kernel.cpp; with a momentum
/// that schedules change or an ascent: rules.h).
#include "ferrite/nn/optim/rmsprop.h"

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/nn/optim/detail/rule_steps.h"
#include "ferrite/nn/optim/detail/sweep.h"
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

struct RmsProp::Group {
  RmsPropOptions options;
  std::unique_ptr<detail::Sweeps> sweeps;
  bool by_rule = false;
};

RmsProp::RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options)
    : Optimizer(std::move(parameters), checked(options).learning_rate, options.skip_nonfinite),
      rules_(std::make_unique<detail::RuleSteps>()) {
  prepare(options);
}

void RmsProp::add_group(std::vector<Parameter> parameters, const RmsPropOptions& options) {
  add_parameters(std::move(parameters), checked(options).learning_rate);
  prepare(options);
}

void RmsProp::prepare(const RmsPropOptions& options) {
  detail::SweepStates states{.square = states_like_parameters("square_avg")};
  if (options.momentum > 0) {
    if (options.momentum < 1) declare_momentum(options.momentum);
    states.velocity = states_like_parameters("momentum_buffer");
  }
  if (options.centered) states.mean = states_like_parameters("grad_avg");
  const detail::Rule rule{.kind = detail::RuleKind::rmsprop,
                          .decay = detail::decay_of(options.weight_decay, false),
                          .weight_decay = options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.alpha, 1 - options.alpha, options.epsilon}};
  rules_->add(rule, {states.square, states.mean, states.velocity});
  const detail::SweepRule sweep{.kind = detail::SweepKind::rmsprop,
                                .weight_decay = options.weight_decay,
                                .momentum = options.momentum,
                                .alpha = options.alpha,
                                .epsilon = options.epsilon,
                                .centered = options.centered};
  Group& g = groups_.emplace_back();
  g.options = options;
  g.sweeps = std::make_unique<detail::Sweeps>(sweep, std::move(states));
}

RmsProp::RmsProp(RmsProp&&) noexcept = default;
RmsProp::~RmsProp() = default;

void RmsProp::begin() {
  rules_->begin();
  for (Group& g : groups_) g.sweeps->begin();
}

void RmsProp::begin_group(std::size_t group) {
  Group& g = groups_[group];
  g.by_rule = g.options.maximize || cycles(group);
  if (!g.by_rule) return;
  const Tensor rate = rate_now(group);
  const Tensor momentum = cycles(group) ? momentum_now(group) : full({}, g.options.momentum, Dtype::f64);
  rules_->begin_group(group, rate, {momentum, rate});
}

void RmsProp::finish() {
  rules_->run();
  for (Group& g : groups_) g.sweeps->run();
}

void RmsProp::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const auto [group, place] = place_of(i);
  const Group& g = groups_[group];
  const RmsPropOptions& o = g.options;
  const Parameter& p = parameters()[i];
  if (g.by_rule) return rules_->update(p, group, place, grad, recorded());
  if (!recorded() && g.sweeps->prepare(p, place, grad, rate)) return;
  const auto& [squares, means, velocities] = g.sweeps->states();
  const Tensor w = p.value();
  const Tensor gradient = o.weight_decay > 0 ? grad + o.weight_decay * w : grad;
  Tensor variance = o.alpha * squares[place].value() + (1 - o.alpha) * square(gradient);
  squares[place].assign(variance);
  if (o.centered) {
    const Tensor before = means[place].value();
    const Tensor mean = before + (1 - o.alpha) * (gradient - before);
    means[place].assign(mean);
    variance = maximum(variance - square(mean), 0);  // rounding may leave less than 0
  }
  Tensor direction = gradient / (sqrt(variance) + o.epsilon);
  if (o.momentum > 0) {
    direction = o.momentum * velocities[place].value() + direction;
    velocities[place].assign(direction);
  }
  p.assign(w - rate * direction);
}

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
