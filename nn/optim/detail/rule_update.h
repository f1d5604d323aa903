#pragma once
/// Elementwise updates as one operation, `rule_update`, and the steps of an optimiser made of it: one sweep in place if
/// no recorder listens, else operations.
#include <memory>
#include <vector>

#include "ferrite/nn/optim/detail/rule.h"
#include "ferrite/tensor/primitive.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::nn::detail {

/// Attributes of `rule_update`, explained in rules.h. Unset ones mean 0 or false; at most one decay is set.
struct RuleAttrs {
  Label rule{};
  std::optional<double> constant0{}, constant1{}, constant2{};
  std::optional<double> number0{}, number1{};  ///< for numbers that are not operands
  std::optional<double> weight_decay{}, decoupled_decay{};
  std::optional<bool> maximize{}, nesterov{}, damped{};
  ferrite::Positions states{};   ///< states that are operands and results
  ferrite::Positions numbers{};  ///< numbers that are operands
  static constexpr auto fields = attr_list(
      attr("rule", &RuleAttrs::rule), attr("constant0", &RuleAttrs::constant0),
      attr("constant1", &RuleAttrs::constant1), attr("constant2", &RuleAttrs::constant2),
      attr("number0", &RuleAttrs::number0), attr("number1", &RuleAttrs::number1),
      attr("weight_decay", &RuleAttrs::weight_decay), attr("decoupled_decay", &RuleAttrs::decoupled_decay),
      attr("maximize", &RuleAttrs::maximize), attr("nesterov", &RuleAttrs::nesterov),
      attr("damped", &RuleAttrs::damped), attr("states", &RuleAttrs::states), attr("numbers", &RuleAttrs::numbers));
};

/// A rule with the sets of states and of numbers that are operands, one bit each.
struct RuleForm {
  Rule rule;
  unsigned states = 0, numbers = 0;
};
Attrs rule_attrs(const RuleForm& form);

/// Returns the form that attributes describe. Throws ValueError, naming `rule_update`, for an unknown rule and for
/// states or numbers that the rule cannot have.
RuleForm rule_form(const RuleAttrs& attrs);

/// Throws ValueError, its message beginning with `where`, unless the rule may have these states.
void check_states(const char* where, RuleKind kind, unsigned states);

/// Returns the sweep in use for a form that `check_states` has accepted.
template <class T>
RuleSweep<T> sweep_of(const Rule& rule, unsigned states);

/// Updates n elements, divided among the threads.
template <class T>
void run_shared(RuleSweep<T> sweep, const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run,
                std::int64_t n);

/// Performs `rule_update` on operands in its order: parameter, gradient, states, numbers. Returns the new parameter and
/// states.
Tensors update_by_rule(Inputs in, const Attrs& attrs);

/// Returns the record of `rule_update`.
const Primitive& rule_operation();

/// The numbers of a group's update, f64, in the order of its rule: of rank 0, or one element for each parameter;
/// undefined where the rule has none or uses its constant.
using RuleNumbers = std::array<Tensor, kRuleNumbers>;

/// An optimiser's step by rules, in two parts: `update` does all that may throw, `run` writes in place.
class RuleSteps {
 public:
  RuleSteps();
  ~RuleSteps();

  /// Adds a group's rule and the states of its parameters, with empty lists for states that the rule does not have;
  /// groups are added in order. Throws ValueError for states that the rule cannot have.
  void add(const Rule& rule, std::array<std::vector<State>, kRuleStates> states);
  /// Drops what an earlier step prepared before it threw.
  void begin();
  /// Begins the update of a group. `numbers` are those of the rule except the rate.
  void begin_group(std::size_t group, const Tensor& rate, RuleNumbers numbers);
  /// Updates a group's parameter: as an operation, at once, if `recorded`; else `run` may write it. The gradient must
  /// stay in place until then.
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
