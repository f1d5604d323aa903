/// Optimisers with elementwise updates, and their steps: one sweep in place if no recorder listens, else operations.
#include "ferrite/nn/optim/rule_optimizer.h"

#include "ferrite/nn/optim/detail/optimizer_values.h"
#include "ferrite/nn/optim/detail/rule_update.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::nn::detail {

using namespace ferrite::detail;

struct RuleSteps::Group {
  /// The location of a number: `step` elements from parameter to parameter, 0 if they share it.
  struct Number {
    const double* first = nullptr;
    std::size_t step = 0;
  };

  RuleForm form;
  std::array<std::vector<State>, kRuleStates> states;
  Attrs attrs{};          ///< attributes of the operation `rule_update`
  RuleNumbers numbers{};  ///< numbers of the current update
  std::array<Number, kRuleNumbers> read{};
  RuleSweep<float> f32 = nullptr;
  RuleSweep<double> f64 = nullptr;

  bool has(std::size_t k) const { return (form.states >> k & 1U) != 0; }

  /// Takes the numbers of an update; undefined ones are constants of the rule.
  void take(RuleNumbers now) {
    numbers = std::move(now);
    unsigned given = 0;
    for (std::size_t k = 0; k < kRuleNumbers; ++k) {
      const Tensor& number = numbers[k];
      if (number.defined()) given |= 1U << k;
      if (!number.defined()) read[k] = {k < kFixedNumbers ? &form.rule.numbers[k] : &kNone, 0};
      if (number.defined() && !number.is_abstract()) read[k] = {number.data<double>(), number.rank() == 0 ? 0U : 1U};
    }
    if (given == form.numbers && !attrs.empty()) return;
    form.numbers = given;
    attrs = rule_attrs(form);
  }

  template <class T>
  RuleNumbersOf<T> numbers_of(std::size_t place) const {
    RuleNumbersOf<T> list;
    for (std::size_t k = 0; k < kRuleNumbers; ++k) list[k] = static_cast<T>(read[k].first[read[k].step * place]);
    return list;
  }

  static constexpr double kNone = 0;
};

struct RuleSteps::Pending {
  const Variable* variable;
  Tensor* w;
  const Tensor* g;
  const Group* group;
  std::size_t place;
  std::array<Tensor*, kRuleStates> states{};
  Tensor dense{}, fresh{};  ///< dense: row-major gradient; fresh: new value if another owner holds the old one

  template <class T>
  void run(RuleSweep<T> sweep) {
    const Tensor& from = dense.defined() ? dense : *g;
    RuleRun<T> run{w->data<T>(), from.data<T>(), Writer::data<T>(fresh.defined() ? fresh : *w)};
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (states[k]) run.states[k] = run.states_out[k] = Writer::data<T>(*states[k]);
    run_shared<T>(sweep, group->form.rule, group->numbers_of<T>(place), run, w->numel());
  }
};

namespace {

/// Returns the value of a variable to write in place: a counted handle costs as much as a small update.
Tensor& value_of(const Variable& variable) { return const_cast<Tensor&>(held_by(variable)); }

}  // namespace

RuleSteps::RuleSteps() = default;
RuleSteps::~RuleSteps() = default;

void RuleSteps::add(const Rule& rule, std::array<std::vector<State>, kRuleStates> states) {
  unsigned set = 0;
  for (std::size_t k = 0; k < kRuleStates; ++k) set |= (states[k].empty() ? 0U : 1U) << k;
  check_states("optimizer", rule.kind, set);
  groups_.push_back(std::make_unique<Group>(Group{{rule, set, 0}, std::move(states)}));
}

void RuleSteps::begin() { pending_.clear(); }

void RuleSteps::begin_group(std::size_t group, const Tensor& rate, RuleNumbers numbers) {
  Group& g = *groups_[group];
  if (uses_number(g.form.rule, kRate)) numbers[kRate] = rate;
  g.take(std::move(numbers));
  g.f32 = sweep_of<float>(g.form.rule, g.form.states);
  g.f64 = sweep_of<double>(g.form.rule, g.form.states);
}

void RuleSteps::update(const Variable& w, std::size_t group, std::size_t place, const Tensor& grad, bool recorded) {
  if (recorded || !prepare(w, *groups_[group], place, grad)) apply(w, *groups_[group], place, grad);
}

bool RuleSteps::prepare(const Variable& w, Group& group, std::size_t place, const Tensor& grad) {
  Tensor* const value = &value_of(w);
  if (grad.is_abstract() || !value->contiguous()) return false;
  std::array<Tensor*, kRuleStates> states{};
  for (std::size_t k = 0; k < kRuleStates; ++k) {
    if (!group.has(k)) continue;
    states[k] = &value_of(group.states[k][place]);
    if (!owned_alone(*states[k]) || !states[k]->contiguous()) return false;
    for (std::size_t j = 0; j < k; ++j)
      if (states[j] == states[k]) return false;  // tied states
  }
  Pending& p = pending_.emplace_back(Pending{&w, value, &grad, &group, place, states});
  if (!grad.contiguous()) p.dense = dense(grad);
  if (!owned_alone(*value)) p.fresh = Tensor::empty(value->spec());
  return true;
}

/// Updates as an operation: reads the variables and assigns the results.
void RuleSteps::apply(const Variable& w, Group& group, std::size_t place, const Tensor& grad) {
  InlineVector<Tensor, 2 + kRuleStates + kRuleNumbers> operands;
  operands.push_back(w.value());
  operands.push_back(grad);
  for (std::size_t k = 0; k < kRuleStates; ++k)
    if (group.has(k)) operands.push_back(group.states[k][place].value());
  for (const Tensor& number : group.numbers)
    if (number.defined()) operands.push_back(number_at(number, place));
  const Tensors out = update_by_rule(OperandList(operands), group.attrs);
  std::size_t at = 1;
  for (std::size_t k = 0; k < kRuleStates; ++k)
    if (group.has(k)) group.states[k][place].assign(out[at++]);
  w.assign(out[0]);
}

void RuleSteps::run() {
  for (Pending& p : pending_) {
    const ProfileEvent event("rule_update", Scope());
    if (p.w->dtype() == Dtype::f32) {
      p.run<float>(p.group->f32);
    } else {
      p.run<double>(p.group->f64);
    }
    if (p.fresh.defined()) p.variable->assign(p.fresh);
  }
  pending_.clear();
}

}  // namespace ferrite::nn::detail

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
