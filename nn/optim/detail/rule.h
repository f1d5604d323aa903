#pragma once
/// What is known of elementwise updates: which rules there are, what they remember, and what their kernels take.
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace ferrite::nn::detail {

enum class RuleKind : std::uint8_t { sgd, rmsprop, adam, nadam, radam, adamax, adagrad, adadelta, lion };

/// Where weight decay enters.
enum class RuleDecay : std::uint8_t {
  none,
  gradient,  ///< g += weight_decay w
  weights,   ///< w -= rate weight_decay w before the update
};

inline constexpr std::size_t kRules = 9, kRuleStates = 3, kRuleConstants = 3, kRuleNumbers = 6;
/// The place of the rate among the numbers of an update.
inline constexpr std::size_t kRate = kRuleNumbers - 1;
/// The first numbers of an update may be constants of the rule: a momentum that nobody changes.
inline constexpr std::size_t kFixedNumbers = 2;

/// Sets of states, one bit each: bit s is the set s, whose bit k is state k.
constexpr std::uint8_t state_sets(std::initializer_list<unsigned> sets) {
  unsigned all = 0;
  for (const unsigned s : sets) all |= 1U << s;
  return static_cast<std::uint8_t>(all);
}

/// What an update remembers and what changes from one update to the next. What they mean, rules.h says.
struct RuleFacts {
  RuleKind kind;
  std::string_view name;
  std::uint8_t sets;  ///< of states that it may have; kernels and checks are made of these
  std::array<std::string_view, kRuleStates> states;
  std::array<std::string_view, kRuleNumbers> numbers;  ///< empty where the formula has none
};

/// The facts of every rule, in the order of RuleKind.
inline constexpr std::array<RuleFacts, kRules> kRuleFacts = {{
    {RuleKind::sgd, "sgd", state_sets({0, 1}), {"momentum_buffer"}, {"momentum", "share", "", "", "", "rate"}},
    {RuleKind::rmsprop,
     "rmsprop",
     state_sets({1, 3, 5, 7}),
     {"square_avg", "grad_avg", "momentum_buffer"},
     {"momentum", "", "", "", "", "rate"}},
    {RuleKind::adam,
     "adam",
     state_sets({3, 7}),
     {"m", "v", "largest_v"},
     {"beta1", "rest1", "correction1", "correction2", "", "rate"}},
    {RuleKind::nadam,
     "nadam",
     state_sets({3}),
     {"m", "v"},
     {"beta1", "rest1", "pace_of_g", "pace_of_m", "root_of_correction2", ""}},
    {RuleKind::radam, "radam", state_sets({3}), {"m", "v"}, {"beta1", "rest1", "pace", "rectified", "", ""}},
    {RuleKind::adamax, "adamax", state_sets({3}), {"m", "largest"}, {"beta1", "rest1", "pace", "", "", ""}},
    {RuleKind::adagrad, "adagrad", state_sets({1}), {"sum"}, {"pace", "", "", "", "", ""}},
    {RuleKind::adadelta, "adadelta", state_sets({3}), {"square_avg", "acc_delta"}, {"", "", "", "", "", "rate"}},
    {RuleKind::lion, "lion", state_sets({1}), {"m"}, {"beta1", "rest1", "", "", "", "rate"}},
}};

constexpr const RuleFacts& facts_of(RuleKind kind) { return kRuleFacts[static_cast<std::size_t>(kind)]; }
/// Whether the rule may have these states.
constexpr bool has_form(RuleKind kind, unsigned states) {
  return states < 8 && (facts_of(kind).sets >> states & 1U) != 0;
}

/// An update that treats every element of a parameter alike, as the options of a group choose it. What its constants,
/// states and numbers are, rules.h says.
struct Rule {
  RuleKind kind = RuleKind::sgd;
  RuleDecay decay = RuleDecay::none;
  double weight_decay = 0;
  bool maximize = false;  ///< against the gradient's sign
  bool nesterov = false;
  bool damped = false;  ///< SGD: the second number is the gradient's share, 1 - dampening
  std::array<double, kRuleConstants> constants{};
  std::array<double, kFixedNumbers> numbers{};  ///< stand in for those that an update leaves undefined
};

/// Whether an update by the rule reads the number at that place, in addition to the rate of a decay of the weights.
constexpr bool uses_number(const Rule& rule, std::size_t k) {
  return !facts_of(rule.kind).numbers[k].empty() || (k == kRate && rule.decay == RuleDecay::weights);
}

/// Where the elements of a parameter, its gradient and its states are read and written; the latter may be the same
/// places.
template <class T>
struct RuleRun {
  const T *w, *g;
  T* w_out;
  std::array<const T*, kRuleStates> states{};  ///< null: there is none
  std::array<T*, kRuleStates> states_out{};

  RuleRun from(std::int64_t at) const {
    RuleRun moved{w + at, g + at, w_out + at, states, states_out};
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (states[k]) {
        moved.states[k] += at;
        moved.states_out[k] += at;
      }
    return moved;
  }
};

/// The numbers of an update in the parameter's dtype.
template <class T>
using RuleNumbersOf = std::array<T, kRuleNumbers>;

/// One update of n elements by a rule.
template <class T>
using RuleSweep = void (*)(const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run, std::int64_t n);

/// What a level has of it (tensor/kernel/level.h): the sweep of a rule with a set of states, null where it may not have
/// them. `plain`: with neither decay nor ascent.
struct RuleKernels {
  RuleSweep<float> (*f32)(RuleKind kind, unsigned states, bool plain);
  RuleSweep<double> (*f64)(RuleKind kind, unsigned states, bool plain);
};

}  // namespace ferrite::nn::detail
