#pragma once
/// An elementwise update as an operation: its constants, its operands and the kernels behind it.
#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/tensor/primitive.h"

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

}  // namespace ferrite::nn::detail
