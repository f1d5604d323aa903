/// Elementwise updates: which are written in place and which in operations.
#include "ferrite/nn/optim/detail/rule_steps.h"

#include <algorithm>

#include "ferrite/nn/optim/detail/common.h"
#include "ferrite/nn/optim/detail/rules.h"
#include "ferrite/nn/optim/detail/shares.h"
#include "ferrite/tensor/accumulate.h"
#include "ferrite/tensor/kernel/levels.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/profiled.h"
#include "ferrite/tensor/strided.h"
#include "ferrite_levels.h"

namespace ferrite::nn::detail {
using namespace ferrite::detail;

#define FERRITE_DECLARE(level)           \
  namespace level {                      \
  extern const RuleKernels rule_kernels; \
  }
FERRITE_EACH_LEVEL(FERRITE_DECLARE)
#undef FERRITE_DECLARE

namespace {

#define FERRITE_TABLE(level) &nn::detail::level::rule_kernels,
constexpr const RuleKernels* kTables[] = {FERRITE_EACH_LEVEL(FERRITE_TABLE)};
#undef FERRITE_TABLE
constinit const TableInUse<RuleKernels> rules_in_use(kTables);

/// A number of an update: a tensor, or else a constant of the rule, which a recorded program holds as a literal.
struct TensorNumber {
  Tensor tensor{};
  double constant = 0;  ///< where there is no tensor
};
Tensor operator*(const TensorNumber& a, const Tensor& b) { return a.tensor.defined() ? a.tensor * b : a.constant * b; }
Tensor operator/(const Tensor& a, const TensorNumber& b) { return b.tensor.defined() ? a / b.tensor : a / b.constant; }

/// What formulas ask of tensors.
struct TensorFunctions {
  static Tensor larger(const Tensor& a, const Tensor& b) { return maximum(a, b); }
  static Tensor not_negative(const Tensor& a) { return maximum(a, 0); }
  static Tensor sign_of(const Tensor& a) { return sign(a); }
  static Tensor choose(const TensorNumber& flag, const Tensor& a, const Tensor& b) {
    return where(flag.tensor > 0, a, b);
  }
};
using Operands = RuleOperands<Tensor, double, TensorNumber, TensorFunctions>;

Tensor composed(RuleKind kind, Operands& o) {
  switch (kind) {
    case RuleKind::sgd: return sgd_rule(o);
    case RuleKind::rmsprop: return rmsprop_rule(o);
    case RuleKind::adam: return adam_rule(o);
    case RuleKind::nadam: return nadam_rule(o);
    case RuleKind::radam: return radam_rule(o);
    case RuleKind::adamax: return adamax_rule(o);
    case RuleKind::adagrad: return adagrad_rule(o);
    case RuleKind::adadelta: return adadelta_rule(o);
    case RuleKind::lion: return lion_rule(o);
  }
  return {};
}

constexpr const char* kEvents[] = {"sgd_update",    "rmsprop_update", "adam_update",     "nadam_update", "radam_update",
                                   "adamax_update", "adagrad_update", "adadelta_update", "lion_update"};

void sweep(const Rule& rule, const std::array<float, kRuleNumbers>& numbers, const RuleRun<float>& run,
           std::int64_t n) {
  rules_in_use.get().f32(rule, numbers, run, n);
}
void sweep(const Rule& rule, const std::array<double, kRuleNumbers>& numbers, const RuleRun<double>& run,
           std::int64_t n) {
  rules_in_use.get().f64(rule, numbers, run, n);
}

}  // namespace

struct RuleSteps::Group {
  Rule rule;
  std::array<std::vector<State>, kRuleStates> states;
  RuleNumbers numbers{};
  RuleNumbers cast_f32{};  ///< made when a parameter asks for it

  bool has(std::size_t k) const { return !states[k].empty(); }

  const RuleNumbers& in(Dtype dtype) {
    if (dtype == Dtype::f64) return numbers;
    for (std::size_t k = 0; k < kRuleNumbers; ++k)
      if (numbers[k].defined() && !cast_f32[k].defined()) cast_f32[k] = cast(numbers[k], dtype);
    return cast_f32;
  }
};

struct RuleSteps::Pending {
  const Variable* variable;
  const Tensor *w, *g;
  const Group* group;
  std::size_t place;
  std::array<const Tensor*, kRuleStates> states;
  Tensor dense, fresh;  ///< the gradient row-major; for the new value, where somebody else holds the old one

  template <class T>
  void run() {
    Tensor out = fresh.defined() ? fresh : *w;
    const Tensor& from = dense.defined() ? dense : *g;
    RuleRun<T> run{w->data<T>(), from.data<T>(), Writer::data<T>(out), {}};
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (states[k]) {
        Tensor state = *states[k];
        run.states[k] = Writer::data<T>(state);
      }
    std::array<T, kRuleNumbers> numbers{};
    for (std::size_t k = 0; k < kRuleNumbers; ++k) {
      const Tensor& number = group->numbers[k];
      numbers[k] = static_cast<T>(number.defined() ? number.data<double>()[number.rank() == 0 ? 0 : place]
                                                   : group->rule.numbers[k]);
    }
    const std::int64_t n = out.numel();
    if (!is_shared(n)) return sweep(group->rule, numbers, run, n);
    each_share(n, [&](std::int64_t at, std::int64_t count) { sweep(group->rule, numbers, run.from(at), count); });
  }
};

RuleSteps::RuleSteps() = default;
RuleSteps::~RuleSteps() = default;

void RuleSteps::add(const Rule& rule, std::array<std::vector<State>, kRuleStates> states) {
  groups_.push_back(std::make_unique<Group>(Group{rule, std::move(states)}));
}

void RuleSteps::begin() { pending_.clear(); }

void RuleSteps::begin_group(std::size_t group, const Tensor& rate, RuleNumbers numbers) {
  Group& g = *groups_[group];
  g.numbers = std::move(numbers);
  g.cast_f32 = {};
  if (g.rule.decay == RuleDecay::weights) g.numbers[kShrink] = rate * g.rule.weight_decay;
}

void RuleSteps::update(const Variable& w, std::size_t group, std::size_t place, const Tensor& grad, bool recorded) {
  if (recorded || !prepare(w, *groups_[group], place, grad)) compose(w, *groups_[group], place, grad);
}

bool RuleSteps::prepare(const Variable& w, Group& group, std::size_t place, const Tensor& grad) {
  Pending p{&w, &held_by(w), &grad, &group, place, {}, {}, {}};
  if (grad.is_abstract() || !p.w->contiguous()) return false;
  for (std::size_t k = 0; k < kRuleStates; ++k) {
    if (!group.has(k)) continue;
    p.states[k] = &held_by(group.states[k][place]);
    if (!owned_alone(*p.states[k]) || !p.states[k]->contiguous()) return false;
    for (std::size_t j = 0; j < k; ++j)
      if (p.states[j] == p.states[k]) return false;  // tied
  }
  if (!grad.contiguous()) p.dense = dense(grad);
  if (!owned_alone(*p.w)) p.fresh = Tensor::empty(p.w->spec());
  pending_.push_back(std::move(p));
  return true;
}

void RuleSteps::compose(const Variable& w, Group& group, std::size_t place, const Tensor& grad) {
  const Rule& rule = group.rule;
  Operands o;
  o.w = w.value();
  o.g = rule.maximize ? -grad : grad;
  o.constants = rule.constants;
  const RuleNumbers& numbers = group.in(grad.dtype());
  for (std::size_t k = 0; k < kRuleNumbers; ++k) {
    o.numbers[k].constant = rule.numbers[k];
    if (numbers[k].defined()) o.numbers[k].tensor = number_at(numbers[k], place);
  }
  o.nesterov = rule.nesterov;
  o.damped = rule.damped;
  for (std::size_t k = 0; k < kRuleStates; ++k) {
    o.has[k] = group.has(k);
    if (o.has[k]) o.states[k] = group.states[k][place].value();
  }
  if (rule.decay == RuleDecay::gradient) o.g = o.g + rule.weight_decay * o.w;
  if (rule.decay == RuleDecay::weights) o.w = o.w - o.numbers[kShrink] * o.w;
  const Tensor updated = composed(rule.kind, o);
  for (std::size_t k = 0; k < kRuleStates; ++k)
    if (o.has[k]) group.states[k][place].assign(o.states[k]);
  w.assign(updated);
}

void RuleSteps::run() {
  for (Pending& p : pending_) {
    const ProfileEvent event(kEvents[static_cast<std::size_t>(p.group->rule.kind)], Scope());
    if (p.w->dtype() == Dtype::f32) {
      p.run<float>();
    } else {
      p.run<double>();
    }
    if (p.fresh.defined()) p.variable->assign(p.fresh);
  }
  pending_.clear();
}

}  // namespace ferrite::nn::detail
