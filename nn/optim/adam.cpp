/// Adam and AdamW as optimisers.
#include "ferrite/nn/optim/adam.h"

#include "ferrite/nn/optim/detail/adam_in_place.h"
#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/nn/optim/detail/rule_steps.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {
namespace {

constexpr double kDecoupledDecay = 1e-2;

void check(const AdamOptions& o, double weight_decay) {
  const auto outside = [](double beta) { return !(beta >= 0 && beta < 1); };
  if (outside(o.beta1) || outside(o.beta2))
    throw ValueError("adam: betas must lie in [0, 1), got " + Scalar(o.beta1).str() + " and " + Scalar(o.beta2).str());
  ferrite::detail::check_not_negative("adam: epsilon and weight_decay", {o.epsilon, weight_decay});
}

/// The options with the decay that they leave to the optimiser.
AdamOptions resolved(AdamOptions o, bool decoupled) {
  if (!o.weight_decay) o.weight_decay = decoupled ? kDecoupledDecay : 0;
  check(o, *o.weight_decay);
  return o;
}

}  // namespace

struct Adam::Group {
  AdamOptions options;
  Attrs betas{};      ///< constants of `adam_begin`
  Attrs constants{};  ///< of `adam_update`
  std::vector<State> mean{}, square{};
  State steps{};                        ///< i64, by parameter
  Tensor correction1{}, correction2{};  ///< 1 - beta^t of the running update, by parameter
  bool by_rule = false;                 ///< rules.h
};

struct Adam::Pending {
  const Group* group = nullptr;
  std::size_t i = 0;  ///< of the parameter
  detail::AdamInPlace update{};
};

Adam::Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(parameters), options.learning_rate, options.skip_nonfinite),
      decoupled_(decoupled),
      rules_(std::make_unique<detail::RuleSteps>()) {
  prepare(resolved(options, decoupled));
}

void Adam::add_group(std::vector<Parameter> parameters, const AdamOptions& options) {
  const AdamOptions o = resolved(options, decoupled_);
  add_parameters(std::move(parameters), o.learning_rate);
  prepare(o);
}

void Adam::prepare(const AdamOptions& options) {
  Group& g = groups_.emplace_back();
  g.options = options;
  g.betas = detail::AdamBetas{options.beta1, options.beta2};
  g.constants = detail::adam_attrs({.beta1 = options.beta1,
                                    .beta2 = options.beta2,
                                    .epsilon = options.epsilon,
                                    .weight_decay = *options.weight_decay,
                                    .decoupled = decoupled_});
  declare_momentum(options.beta1);
  g.mean = states_like_parameters("exp_avg");
  g.square = states_like_parameters("exp_avg_sq");
  std::vector<State> largest;
  if (options.amsgrad) largest = states_like_parameters("max_exp_avg_sq");
  g.steps = element_state("step", 0, Dtype::i64);
  const detail::Rule rule{.kind = detail::RuleKind::adam,
                          .decay = detail::decay_of(*options.weight_decay, decoupled_),
                          .weight_decay = *options.weight_decay,
                          .maximize = options.maximize,
                          .constants = {options.beta2, 1 - options.beta2, options.epsilon}};
  rules_->add(rule, {g.mean, g.square, std::move(largest)});
}

Adam::Adam(Adam&&) noexcept = default;
Adam::~Adam() = default;

void Adam::begin() {
  pending_.clear();  // of a step that threw
  pending_.reserve(parameters().size());
  rules_->begin();
}

void Adam::begin_group(std::size_t group) {
  Group& g = groups_[group];
  g.by_rule = g.options.amsgrad || g.options.maximize || cycles(group);
  if (!g.by_rule) {
    const Tensors begun = detail::begin_adam(g.steps.value(), updated_now(), g.betas);
    g.steps.assign(begun[0]);
    g.correction1 = begun[1];
    g.correction2 = begun[2];
    return;
  }
  const Tensor t = detail::count_step(g.steps, updated_now()), rate = rate_now(group), beta1 = momentum_now(group);
  rules_->begin_group(
      group, rate,
      {beta1, 1 - beta1, rate / detail::correction(beta1, t), sqrt(detail::correction(g.options.beta2, t))});
}

void Adam::update(std::size_t i, const Tensor& grad, const Tensor& rate) {
  const auto [group, place] = place_of(i);
  const Group& g = groups_[group];
  if (g.by_rule) return rules_->update(parameters()[i], group, place, grad, recorded());
  const detail::AdamVariables variables{parameters()[i], g.mean[place], g.square[place]};
  const detail::AdamPace pace{rate, g.correction1, g.correction2, place};
  Pending& p = pending_.emplace_back();
  p.group = &g;
  p.i = i;
  if (!recorded() && p.update.prepare(variables, grad, pace)) return;
  pending_.pop_back();
  detail::update_by_adam(variables, grad, pace, g.constants);
}

void Adam::finish() {
  for (Pending& p : pending_) p.update.run(parameters()[p.i], p.group->constants);
  pending_.clear();
  rules_->run();
}

std::vector<NamedOption> Adam::options(std::size_t group) const {
  const AdamOptions& o = groups_.at(group).options;
  return {{"betas", detail::pair_option(momentum(group), o.beta2)},
          {"eps", o.epsilon},
          {"weight_decay", *o.weight_decay},
          {"amsgrad", o.amsgrad},
          {"maximize", o.maximize},
          {"decoupled_weight_decay", decoupled_}};
}

}  // namespace ferrite::nn
