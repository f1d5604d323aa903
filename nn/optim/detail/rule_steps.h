#pragma once
/// Elementwise updates of an optimiser's groups: in place by one sweep where nobody records, else as operations.
#include <memory>
#include <vector>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// The numbers of an update of a group, f64, in the order of its rule: of rank 0, or an element for each parameter;
/// undefined where it has none, or where the rule's constant is used.
using RuleNumbers = std::array<Tensor, kRuleNumbers>;

/// An optimiser's step by rules, in two steps of its own: all that may throw is done by `update`, and what is written
/// in place by `run`.
class RuleSteps {
 public:
  RuleSteps();
  ~RuleSteps();

  /// A group's rule and the states of its parameters, empty where the rule has none; groups come in their order. Throws
  /// ValueError for states that the rule cannot have.
  void add(const Rule& rule, std::array<std::vector<State>, kRuleStates> states);
  /// Forgets what a step that threw has prepared.
  void begin();
  /// Begins the group's update. The numbers but the rate are those of the rule.
  void begin_group(std::size_t group, const Tensor& rate, RuleNumbers numbers);
  /// Updates the group's parameter at that place, at once as an operation when `recorded`; otherwise `run` may write
  /// it. The gradient stays where it is until then.
  void update(const Variable& w, std::size_t group, std::size_t place, const Tensor& grad, bool recorded);
  /// Writes what was prepared. Throws nothing.
  void run();

 private:
  struct Group;
  struct Pending;
  bool prepare(const Variable& w, Group& group, std::size_t place, const Tensor& grad);
  static void apply(const Variable& w, Group& group, std::size_t place, const Tensor& grad);

  std::vector<std::unique_ptr<Group>> groups_;
  std::vector<Pending> pending_;
};

}  // namespace ferrite::nn::detail
