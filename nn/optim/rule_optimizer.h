#pragma once
/// The base of optimisers whose update treats every element alike: one operation a parameter.
#include <array>
#include <memory>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

namespace detail {
struct Rule;
class RuleSteps;
}  // namespace detail

/// The base of SGD, Adam, AdamW, RMSprop, NAdam, RAdam, Adamax, Adagrad, Adadelta and Lion. Each parameter with its
/// states is one operation, `rule_update`: in a recorded or compiled step as such, otherwise one sweep over memory,
/// with the same bits.
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(RuleOptimizer&&) noexcept;
  ~RuleOptimizer() override;

 protected:
  RuleOptimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  /// Gives the newest group its rule and its states; empty lists where the rule has none.
  void add_rule(const detail::Rule& rule, std::array<std::vector<State>, 3> states);

  /// The numbers of the group's update that begins, but its rate: f64, of rank 0 or with an element for each parameter,
  /// in the order of the rule (detail/rules.h); undefined where the rule's constant is used.
  virtual std::array<Tensor, 6> numbers(std::size_t group) = 0;
  /// beta1 and 1 - beta1 as numbers of an update where somebody has set them; otherwise undefined.
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
