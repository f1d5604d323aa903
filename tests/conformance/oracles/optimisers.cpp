// Oracles and samples of nn/optim: the formulas of optimisers in doubles, as in their papers and PyTorch.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/nn/optim/detail/optimizer_values.h"
#include "ferrite/nn/optim/detail/rule_update.h"

namespace oracles::optimisers {
namespace {
using namespace ferrite::nn::detail;

/// One element with its states and the numbers of the step.
struct Element {
  double w, g;
  std::array<double, kRuleStates> s;
  std::array<double, kRuleNumbers> n;
};

void move_average(double& average, double beta, double value) { average = beta * average + (1 - beta) * value; }

/// Updates the first moment, whose shares are numbers of the step.
void move_mean(Element& e) { e.s[0] = e.n[0] * e.s[0] + e.n[1] * e.g; }

double sgd(Element& e, const Rule& r, unsigned states) {
  if (states == 0) return e.w - e.n[kRate] * e.g;
  e.s[0] = e.n[0] * e.s[0] + (r.damped ? e.n[1] : 1) * e.g;
  return e.w - e.n[kRate] * (r.nesterov ? e.g + e.n[0] * e.s[0] : e.s[0]);
}

double rmsprop(Element& e, const Rule& r, unsigned states) {
  move_average(e.s[0], r.constants[0], e.g * e.g);
  double variance = e.s[0];
  if ((states & 2U) != 0) {
    move_average(e.s[1], r.constants[0], e.g);
    variance = std::max(0.0, variance - e.s[1] * e.s[1]);
  }
  double direction = e.g / (std::sqrt(variance) + r.constants[2]);
  if ((states & 4U) != 0) direction = e.s[2] = e.n[0] * e.s[2] + direction;
  return e.w - e.n[kRate] * direction;
}

double adam(Element& e, const Rule& r, unsigned states) {
  move_mean(e);
  move_average(e.s[1], r.constants[0], e.g * e.g);
  double v = e.s[1];
  if ((states & 4U) != 0) v = e.s[2] = std::max(e.s[2], v);
  return e.w - e.n[kRate] * (e.s[0] / e.n[2]) / (std::sqrt(v / e.n[3]) + r.constants[2]);
}

double nadam(Element& e, const Rule& r) {
  move_mean(e);
  move_average(e.s[1], r.constants[0], e.g * e.g);
  return e.w - (e.n[2] * e.g + e.n[3] * e.s[0]) / (std::sqrt(e.s[1]) / e.n[4] + r.constants[2]);
}

double radam(Element& e, const Rule& r) {
  move_mean(e);
  move_average(e.s[1], r.constants[0], e.g * e.g);
  return e.w - e.n[2] * (e.n[3] > 0 ? e.s[0] / (std::sqrt(e.s[1]) + r.constants[2]) : e.s[0]);
}

double adamax(Element& e, const Rule& r) {
  move_mean(e);
  e.s[1] = std::max(r.constants[0] * e.s[1], std::fabs(e.g) + r.constants[2]);
  return e.w - e.n[2] * e.s[0] / e.s[1];
}

double adagrad(Element& e, const Rule& r) {
  e.s[0] += e.g * e.g;
  return e.w - e.n[0] * e.g / (std::sqrt(e.s[0]) + r.constants[0]);
}

double adadelta(Element& e, const Rule& r) {
  move_average(e.s[0], r.constants[0], e.g * e.g);
  const double delta = std::sqrt((e.s[1] + r.constants[2]) / (e.s[0] + r.constants[2])) * e.g;
  move_average(e.s[1], r.constants[0], delta * delta);
  return e.w - e.n[kRate] * delta;
}

double lion(Element& e, const Rule& r) {
  const double direction = e.n[0] * e.s[0] + e.n[1] * e.g;
  move_average(e.s[0], r.constants[0], e.g);
  return e.w - e.n[kRate] * (direction > 0 ? 1 : direction < 0 ? -1 : 0);
}

double updated(Element& e, const Rule& r, unsigned states) {
  switch (r.kind) {
    case RuleKind::sgd: return sgd(e, r, states);
    case RuleKind::rmsprop: return rmsprop(e, r, states);
    case RuleKind::adam: return adam(e, r, states);
    case RuleKind::nadam: return nadam(e, r);
    case RuleKind::radam: return radam(e, r);
    case RuleKind::adamax: return adamax(e, r);
    case RuleKind::adagrad: return adagrad(e, r);
    case RuleKind::adadelta: return adadelta(e, r);
    case RuleKind::lion: return lion(e, r);
  }
  return 0;
}

bool has(unsigned set, std::size_t k) { return (set >> k & 1U) != 0; }

/// Returns whether number k, which may be a constant or an operand, is a constant of a sample: a momentum, or a number
/// that the rule sets.
bool is_constant(const Rule& rule, std::size_t k) {
  if (k >= kFixedNumbers) return false;
  const bool momentum = rule.kind == RuleKind::sgd || rule.kind == RuleKind::rmsprop;
  return momentum ? k == 0 || !rule.damped : rule.numbers[k] != 0;
}

/// Returns a sample with operands of a shape.
Sample sample(const Shape& shape, const Rule& rule, unsigned states, std::vector<double> values = {}) {
  unsigned numbers = 0;
  Sample s;
  s.inputs = {{shape}, {shape}};
  for (std::size_t k = 0; k < kRuleStates; ++k)
    if (has(states, k)) s.inputs.push_back({shape});
  for (std::size_t k = 0; k < kRuleNumbers; ++k)
    if (uses_number(rule, k) && !is_constant(rule, k)) {
      numbers |= 1U << k;
      s.inputs.push_back({Shape()});
    }
  s.attrs = rule_attrs({rule, states, numbers});
  s.range = {0.1, 1};
  s.values = std::move(values);
  return s;
}

constexpr RuleDecay kGradient = RuleDecay::gradient, kWeights = RuleDecay::weights;

void add_samples_of_sgd_and_rmsprop(std::vector<Sample>& list) {
  using enum RuleKind;
  list.push_back(sample({5}, {.kind = sgd}, 0));
  list.push_back(sample({3, 2}, {.kind = sgd, .decay = kGradient, .weight_decay = 0.3, .maximize = true}, 0));
  list.push_back(sample({5}, {.kind = sgd, .numbers = {0.9}}, 1));
  list.push_back(
      sample({37}, {.kind = sgd, .decay = kGradient, .weight_decay = 0.1, .nesterov = true, .numbers = {0.7}}, 1));
  list.push_back(sample({2, 2}, {.kind = sgd, .damped = true, .numbers = {0.5}}, 1));
  const std::array<double, 3> averages{0.8, 1 - 0.8, 0.1};
  list.push_back(sample({5}, {.kind = rmsprop, .constants = averages}, 1));
  list.push_back(sample({2, 3}, {.kind = rmsprop, .constants = averages, .numbers = {0.9}}, 5));
  // Squares far above the square of the mean, because where rounding decides the variance nothing is smooth.
  const std::vector<double> apart = {0.9, 0.4, 0.8, 0.7, 0.95, 0.2};
  list.push_back(sample({2}, {.kind = rmsprop, .constants = averages}, 3, apart));
  list.push_back(sample({2},
                        {.kind = rmsprop,
                         .decay = kGradient,
                         .weight_decay = 0.1,
                         .maximize = true,
                         .constants = averages,
                         .numbers = {0.5}},
                        7, apart));
}

void add_samples_of_adam(std::vector<Sample>& list) {
  const auto adam = [&](const Shape& shape, double beta1, double beta2, double epsilon, unsigned states,
                        RuleDecay decay, double weight_decay, bool maximize) {
    list.push_back(sample(shape,
                          {.kind = RuleKind::adam,
                           .decay = decay,
                           .weight_decay = weight_decay,
                           .maximize = maximize,
                           .constants = {beta2, 1 - beta2, epsilon},
                           .numbers = {beta1, beta1 > 0 ? 1 - beta1 : 0}},
                          states));
  };
  adam({3, 2}, 0.9, 0.8, 0.1, 3, RuleDecay::none, 0, false);
  adam({5}, 0.5, 0.9, 0.01, 3, kGradient, 0.3, false);
  adam({2, 2}, 0.7, 0.6, 0.1, 3, kWeights, 0.4, false);
  adam({}, 0.9, 0.9, 0.1, 3, RuleDecay::none, 0, true);
  adam({0, 3}, 0.9, 0.999, 1e-8, 3, RuleDecay::none, 0, false);
  adam({37}, 0.9, 0.999, 0.1, 3, kGradient, 0.1, false);
  adam({4}, 0.9, 0.7, 0.1, 7, kWeights, 0.1, true);
  adam({5}, 0, 0.7, 0.1, 7, RuleDecay::none, 0, false);  // beta1 and 1 - beta1 are operands
}

void add_samples_of_others(std::vector<Sample>& list) {
  using enum RuleKind;
  const std::array<double, 3> second{0.7, 1 - 0.7, 0.1};
  const std::array<double, 2> first{0.6, 1 - 0.6};
  list.push_back(sample({5}, {.kind = nadam, .constants = second, .numbers = first}, 3));
  list.push_back(
      sample({37}, {.kind = nadam, .decay = kWeights, .weight_decay = 0.2, .constants = second, .numbers = first}, 3));
  list.push_back(sample({2, 2}, {.kind = radam, .constants = second, .numbers = first}, 3));
  list.push_back(sample({1}, {.kind = radam, .maximize = true, .constants = second, .numbers = first}, 3,
                        {0.3, 0.4, 0.5, 0.6, 0.7, -0.5}));
  list.push_back(sample({5}, {.kind = adamax, .constants = {0.7, 0, 0.1}, .numbers = first}, 3));
  list.push_back(sample({3}, {.kind = adagrad, .constants = {0.1}}, 1));
  list.push_back(sample({2, 3}, {.kind = adagrad, .decay = kGradient, .weight_decay = 0.3, .constants = {0.01}}, 1));
  list.push_back(sample({5}, {.kind = adadelta, .constants = second}, 3));
  list.push_back(sample({5}, {.kind = lion, .constants = {0.9, 1 - 0.9}, .numbers = first}, 1));
  list.push_back(sample(
      {4}, {.kind = lion, .decay = kWeights, .weight_decay = 0.3, .maximize = true, .constants = {0.9, 1 - 0.9}}, 1));
}

struct RuleUpdate {
  using Attributes = ferrite::nn::detail::RuleAttrs;
  static constexpr auto name = "rule_update";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const RuleForm form = rule_form(attrs);
    const Rule& r = form.rule;
    Element e{};
    for (std::size_t k = 0; k < kFixedNumbers; ++k) e.n[k] = r.numbers[k];
    std::size_t at = in.size() - 1;
    for (std::size_t k = kRuleNumbers; k-- > 0;)
      if (has(form.numbers, k)) e.n[k] = in[at--].values[0];
    for (std::size_t i = 0; i < in[0].values.size(); ++i) {
      e.w = in[0].values[i];
      e.g = r.maximize ? -in[1].values[i] : in[1].values[i];
      at = 2;
      for (std::size_t k = 0; k < kRuleStates; ++k)
        if (has(form.states, k)) e.s[k] = in[at++].values[i];
      if (r.decay == RuleDecay::gradient) e.g += r.weight_decay * e.w;
      if (r.decay == RuleDecay::weights) e.w *= 1 - e.n[kRate] * r.weight_decay;
      out[0].values[i] = updated(e, r, form.states);
      at = 1;
      for (std::size_t k = 0; k < kRuleStates; ++k)
        if (has(form.states, k)) out[at++].values[i] = e.s[k];
    }
  }
  static std::vector<Sample> samples() {
    std::vector<Sample> list;
    add_samples_of_adam(list);  // first, because pages show the composition of the first one
    add_samples_of_sgd_and_rmsprop(list);
    add_samples_of_others(list);
    return list;
  }
};

struct AdamBegin {
  using Attributes = AdamBetas;
  static constexpr auto name = "adam_begin";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (std::size_t i = 0; i < in[0].values.size(); ++i) {
      const double t = out[0].values[i] = in[0].values[i] + (in.size() > 1 ? in[1].values[i] : 1);
      out[1].values[i] = -std::expm1(t * std::log(attrs.beta1));
      out[2].values[i] = -std::expm1(t * std::log(attrs.beta2));
    }
  }

  static std::vector<Sample> samples() {
    const AdamBetas attrs{0.8, 0.95};
    return {{.inputs = {{{}, Dtype::i64}}, .attrs = attrs, .indices = {4}},
            {.inputs = {{{2, 3}, Dtype::i64}}, .attrs = attrs, .indices = {0, 0, 7, 19, 20, 20}},
            {.inputs = {{{5}, Dtype::i64}, {{5}, Dtype::i64}}, .attrs = attrs, .indices = {0, 1, 1, 1, 0}}};
  }
};

const Added added = add<RuleUpdate, AdamBegin>();

}  // namespace
}  // namespace oracles::optimisers
