#pragma once
/// Elementwise updates as one operation, `rule_update`, and the steps of an optimiser that are made of it: in place by
/// one sweep where nobody records, else as operations.
#include <memory>
#include <vector>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// The constants of `rule_update`. What they mean, rules.h says; one that is not set is 0 or false, and one decay at
/// most is set.
struct RuleAttrs {
  Label rule{};
  std::optional<double> constant0{}, constant1{}, constant2{};
  std::optional<double> number0{}, number1{};  ///< where they are no operands
  std::optional<double> weight_decay{}, decoupled_decay{};
  std::optional<bool> maximize{}, nesterov{}, damped{};
  ferrite::Positions states{};   ///< those that are operands and results
  ferrite::Positions numbers{};  ///< those that are operands
  static constexpr auto fields = attr_list(
      attr("rule", &RuleAttrs::rule), attr("constant0", &RuleAttrs::constant0),
      attr("constant1", &RuleAttrs::constant1), attr("constant2", &RuleAttrs::constant2),
      attr("number0", &RuleAttrs::number0), attr("number1", &RuleAttrs::number1),
      attr("weight_decay", &RuleAttrs::weight_decay), attr("decoupled_decay", &RuleAttrs::decoupled_decay),
      attr("maximize", &RuleAttrs::maximize), attr("nesterov", &RuleAttrs::nesterov),
      attr("damped", &RuleAttrs::damped), attr("states", &RuleAttrs::states), attr("numbers", &RuleAttrs::numbers));
};

/// A rule with its sets of states and of numbers that are operands, a bit each.
struct RuleForm {
  Rule rule;
  unsigned states = 0, numbers = 0;
};
Attrs rule_attrs(const RuleForm& form);

/// Throws ValueError, in the name of `rule_update`, for a rule that there is not and for states or numbers that it
/// cannot have.
RuleForm rule_form(const RuleAttrs& attrs);

/// Throws ValueError, its message begun with `where`, unless the rule may have these states.
void check_states(const char* where, RuleKind kind, unsigned states);

/// The sweep in use of a form that `check_states` has accepted.
template <class T>
RuleSweep<T> sweep_of(const Rule& rule, unsigned states);

/// One update of n elements, its share for each thread.
template <class T>
void run_shared(RuleSweep<T> sweep, const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run,
                std::int64_t n);

/// `rule_update` of operands in its order: parameter, gradient, states, numbers. Gives the new parameter and states.
Tensors update_by_rule(Inputs in, const Attrs& attrs);

/// The record of `rule_update`.
const Primitive& rule_operation();

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
