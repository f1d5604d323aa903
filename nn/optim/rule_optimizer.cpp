/// Optimisers whose update treats every element alike.
#include "ferrite/nn/optim/rule_optimizer.h"

#include "ferrite/nn/optim/detail/rule_steps.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::nn {

RuleOptimizer::RuleOptimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite)
    : Optimizer(std::move(parameters), learning_rate, skip_nonfinite), steps_(std::make_unique<detail::RuleSteps>()) {}
RuleOptimizer::RuleOptimizer(RuleOptimizer&&) noexcept = default;
RuleOptimizer::~RuleOptimizer() = default;

void RuleOptimizer::add_rule(const detail::Rule& rule, std::array<std::vector<State>, 3> states) {
  steps_->add(rule, std::move(states));
}

std::array<Tensor, 2> RuleOptimizer::first_betas_now(std::size_t group) const {
  if (!cycles(group)) return {};
  const Tensor beta1 = momentum_now(group);
  return {beta1, 1 - beta1};
}

void RuleOptimizer::begin() { steps_->begin(); }

void RuleOptimizer::begin_group(std::size_t group) { steps_->begin_group(group, rate_now(group), numbers(group)); }

void RuleOptimizer::update(std::size_t i, const Tensor& grad, const Tensor&) {
  const auto [group, place] = place_of(i);
  steps_->update(parameters()[i], group, place, grad, recorded());
}

void RuleOptimizer::finish() { steps_->run(); }

}  // namespace ferrite::nn
