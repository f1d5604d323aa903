#pragma once
/// The base of optimisers whose update treats every element alike: in place by one sweep, or in operations.
#include <array>
#include <memory>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

namespace detail {
struct Rule;
class RuleSteps;
}  // namespace detail

/// The base of SGD, RMSprop, NAdam, RAdam, Adamax, Adagrad, Adadelta and Lion. An eager step is one sweep over memory;
/// a recorded or compiled one consists of operations with the same bits.
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(RuleOptimizer&&) noexcept;
  ~RuleOptimizer() override;

 protected:
  RuleOptimizer(std::vector<Parameter> parameters, double learning_rate, bool skip_nonfinite);
  /// Gives the newest group its rule and its states; empty lists where the rule has none.
  void add_rule(const detail::Rule& rule, std::array<std::vector<State>, 3> states);

  /// The numbers of the group's update that begins, f64, of rank 0 or with an element for each parameter, in the order
  /// of the rule (detail/rules.h); undefined where the rule's constant is used.
  virtual std::array<Tensor, 6> numbers(std::size_t group) = 0;

 private:
  void begin() final;
  void begin_group(std::size_t group) final;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) final;
  void finish() final;

  std::unique_ptr<detail::RuleSteps> steps_;
};

}  // namespace ferrite::nn
