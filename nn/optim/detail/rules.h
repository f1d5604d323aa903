#pragma once
/// The formulas of elementwise updates, each written once: tensors evaluate it as the definition of `rule_update`,
/// packets in its kernels. Both round in the same way.
///
/// If a formula uses the rate, it is the last number.
#include <array>
#include <cmath>

#include "ferrite/nn/optim/detail/rule.h"

namespace ferrite::nn::detail {

/// The operands of a formula. `Functions` holds what differs between tensors and packets: larger(a, b),
/// not_negative(a), sign_of(a), choose(flag, a, b), and root_over(a, divisor), which is sqrt(a) / divisor.
template <class Value, class Constant, class Number, class Functions>
struct RuleOperands : Functions {
  Value w{}, g{};
  std::array<Value, kRuleStates> states{};
  std::array<bool, kRuleStates> has{};
  std::array<Constant, kRuleConstants> constants{};
  std::array<Number, kRuleNumbers> numbers{};
  bool nesterov = false, damped = false;
};

/// Turns the numbers of an update into those that a formula uses, both in the parameter's dtype. Adam's are given as
/// rate, 1 - beta1^t and 1 - beta2^t, so that they round as in the operations.
template <RuleKind kind, class Numbers>
[[gnu::always_inline]] inline void prepare_numbers(Numbers& n) {
  using std::sqrt;
  if constexpr (kind == RuleKind::adam) {
    n[2] = n[kRate] / n[2];
    n[3] = sqrt(n[3]);
  }
}

/// Updates by SGD. Numbers: momentum; if `damped`, the gradient's share 1 - dampening; rate. State: velocity.
template <class O>
[[gnu::always_inline]] inline auto sgd_rule(O& o) {
  const auto& [momentum, share, n2, n3, n4, rate] = o.numbers;
  if (!o.has[0]) return o.w - rate * o.g;
  auto& velocity = o.states[0];
  velocity = o.damped ? momentum * velocity + share * o.g : momentum * velocity + o.g;
  return o.w - rate * (o.nesterov ? o.g + momentum * velocity : velocity);
}

/// Updates by RMSprop. Constants: alpha, 1 - alpha, epsilon. Numbers: momentum, rate. States: averages of squares and
/// (centered) of gradients, velocity.
template <class O>
[[gnu::always_inline]] inline auto rmsprop_rule(O& o) {
  const auto& [alpha, rest, epsilon] = o.constants;
  const auto& [momentum, n1, n2, n3, n4, rate] = o.numbers;
  auto& [squares, mean, velocity] = o.states;
  squares = alpha * squares + rest * (o.g * o.g);
  auto variance = squares;
  if (o.has[1]) {
    mean = mean + rest * (o.g - mean);
    variance = o.not_negative(squares - mean * mean);  // rounding may give less than 0
  }
  auto direction = o.g / (sqrt(variance) + epsilon);
  if (o.has[2]) direction = velocity = momentum * velocity + direction;
  return o.w - rate * direction;
}

/// Updates m and v of Adam and its relatives. Constants: beta2, 1 - beta2, epsilon. Numbers: beta1, 1 - beta1, others.
template <class O>
[[gnu::always_inline]] inline void update_moments(O& o) {
  o.states[0] = o.numbers[0] * o.states[0] + o.numbers[1] * o.g;
  o.states[1] = o.constants[0] * o.states[1] + o.constants[1] * (o.g * o.g);
}

/// Updates by Adam. Numbers, as prepared: rate / (1 - beta1^t), sqrt(1 - beta2^t). States: m, v, largest v (amsgrad).
template <class O>
[[gnu::always_inline]] inline auto adam_rule(O& o) {
  const auto& [beta1, rest1, pace, root2, n4, n5] = o.numbers;
  update_moments(o);
  auto v = o.states[1];
  if (o.has[2]) v = o.states[2] = o.larger(o.states[2], v);
  const auto denominator = o.root_over(v, root2) + o.constants[2];
  return o.w - pace * (o.states[0] / denominator);
}

/// Updates by NAdam. Numbers: the factors of the gradient and of m, sqrt(1 - beta2^t). States: m, v.
template <class O>
[[gnu::always_inline]] inline auto nadam_rule(O& o) {
  const auto& [beta1, rest1, pace_of_g, pace_of_m, root2, n5] = o.numbers;
  update_moments(o);
  const auto denominator = o.root_over(o.states[1], root2) + o.constants[2];
  const auto w = o.w - pace_of_g * (o.g / denominator);
  return w - pace_of_m * (o.states[0] / denominator);
}

/// Updates by RAdam. Numbers: the factor, rectified if possible; 1 if it is rectified, 0 where the variance is
/// intractable. States: m, v.
template <class O>
[[gnu::always_inline]] inline auto radam_rule(O& o) {
  const auto& [beta1, rest1, pace, rectified, n4, n5] = o.numbers;
  update_moments(o);
  const auto adapted = o.states[0] / (sqrt(o.states[1]) + o.constants[2]);
  return o.w - pace * o.choose(rectified, adapted, o.states[0]);
}

/// Updates by Adamax. Constants: beta2, none, epsilon. Number: rate / (1 - beta1^t). States: m, the decayed largest
/// |g|.
template <class O>
[[gnu::always_inline]] inline auto adamax_rule(O& o) {
  const auto& [beta1, rest1, pace, n3, n4, n5] = o.numbers;
  auto& [m, largest, s2] = o.states;
  m = beta1 * m + rest1 * o.g;
  largest = o.larger(o.constants[0] * largest, abs(o.g) + o.constants[2]);
  return o.w - pace * (m / largest);
}

/// Updates by Adagrad. Constant: epsilon. Number: the decayed rate. State: sum of squares.
template <class O>
[[gnu::always_inline]] inline auto adagrad_rule(O& o) {
  o.states[0] = o.states[0] + o.g * o.g;
  return o.w - o.numbers[0] * (o.g / (sqrt(o.states[0]) + o.constants[0]));
}

/// Updates by Adadelta. Constants: rho, 1 - rho, epsilon. Number: rate. States: averages of squared gradients and of
/// squared updates.
template <class O>
[[gnu::always_inline]] inline auto adadelta_rule(O& o) {
  const auto& [rho, rest, epsilon] = o.constants;
  auto& [squares, deltas, s2] = o.states;
  squares = rho * squares + rest * (o.g * o.g);
  const auto delta = sqrt(deltas + epsilon) / sqrt(squares + epsilon) * o.g;
  deltas = rho * deltas + rest * (delta * delta);
  return o.w - o.numbers[kRate] * delta;
}

/// Updates by Lion. Constants: beta2, 1 - beta2. Numbers: beta1, 1 - beta1, rate. State: m.
template <class O>
[[gnu::always_inline]] inline auto lion_rule(O& o) {
  const auto& [beta1, rest1, n2, n3, n4, rate] = o.numbers;
  auto& m = o.states[0];
  const auto w = o.w - rate * o.sign_of(beta1 * m + rest1 * o.g);
  m = o.constants[0] * m + o.constants[1] * o.g;
  return w;
}

/// Returns the new value of a parameter and updates its states.
template <RuleKind kind, class O>
[[gnu::always_inline]] inline auto apply_rule(O& o) {
  if constexpr (kind == RuleKind::sgd) return sgd_rule(o);
  if constexpr (kind == RuleKind::rmsprop) return rmsprop_rule(o);
  if constexpr (kind == RuleKind::adam) return adam_rule(o);
  if constexpr (kind == RuleKind::nadam) return nadam_rule(o);
  if constexpr (kind == RuleKind::radam) return radam_rule(o);
  if constexpr (kind == RuleKind::adamax) return adamax_rule(o);
  if constexpr (kind == RuleKind::adagrad) return adagrad_rule(o);
  if constexpr (kind == RuleKind::adadelta) return adadelta_rule(o);
  if constexpr (kind == RuleKind::lion) return lion_rule(o);
}

}  // namespace ferrite::nn::detail
