#pragma once
/// The base class of optimisers with elementwise updates: one operation for each parameter.
#include <array>
#include <memory>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

namespace detail {
struct Rule;
class RuleSteps;
}  // namespace detail

/// The base class of SGD, Adam, AdamW, RMSprop, NAdam, RAdam, Adamax, Adagrad, Adadelta and Lion. The update of a
/// parameter and its states is one operation, `rule_update`. A recorded or compiled step contains it as such; otherwise
/// it is one sweep over memory, with the same bits.
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(RuleOptimizer&&) noexcept;
  ~RuleOptimizer() override;

 protected:
  RuleOptimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  /// Gives the newest group its rule and states; lists are empty where the rule has no such state.
  void add_rule(const detail::Rule& rule, std::array<std::vector<State>, 3> states);

  /// Returns the numbers of the current update of the group except its rate: f64, of rank 0 or with an element for each
  /// parameter, in the order of the rule (detail/rules.h); undefined where the rule's constant is used.
  virtual std::array<Tensor, 6> numbers(std::size_t group) = 0;
  /// Returns beta1 and 1 - beta1 as numbers of the current update if the momentum was ever set; otherwise undefined.
  std::array<Tensor, 2> first_betas_now(std::size_t group) const;

 private:
  void begin() final;
  void begin_group(std::size_t group) final;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) final;
  bool takes_rate() const final { return false; }
  void finish() final;

  std::unique_ptr<detail::RuleSteps> steps_;
};

}  // namespace ferrite::nn
