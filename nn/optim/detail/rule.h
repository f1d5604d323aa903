#pragma once
/// The facts about elementwise updates: the rules, their states, and the interface of their kernels.
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace ferrite::nn::detail {

enum class RuleKind : std::uint8_t { sgd, rmsprop, adam, nadam, radam, adamax, adagrad, adadelta, lion };

/// The place where weight decay enters an update.
enum class RuleDecay : std::uint8_t {
  none,
  gradient,  ///< g += weight_decay w
  weights,   ///< w -= rate weight_decay w before the update
};

inline constexpr std::size_t kRules = 9, kRuleStates = 3, kRuleConstants = 3, kRuleNumbers = 6;
/// The index of the rate among the numbers of an update.
inline constexpr std::size_t kRate = kRuleNumbers - 1;
/// Number of leading numbers of an update that may be constants of the rule, such as a momentum that never changes.
inline constexpr std::size_t kFixedNumbers = 2;

/// Makes a set of sets of states: bit s means the set s, whose bit k is state k.
constexpr std::uint8_t state_sets(std::initializer_list<unsigned> sets) {
  unsigned all = 0;
  for (const unsigned s : sets) all |= 1U << s;
  return static_cast<std::uint8_t>(all);
}

/// The name, states and numbers of a rule; rules.h gives their meaning.
struct RuleFacts {
  RuleKind kind;
  std::string_view name;
  std::uint8_t sets;  ///< allowed sets of states; kernels and checks follow them
  std::array<std::string_view, kRuleStates> states;
  std::array<std::string_view, kRuleNumbers> numbers;  ///< names of the numbers, empty where the formula has none
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
/// Returns whether the rule may have this set of states.
constexpr bool has_form(RuleKind kind, unsigned states) {
  return states < 8 && (facts_of(kind).sets >> states & 1U) != 0;
}

/// An elementwise update with the options of a group. rules.h gives the meaning of constants, states and numbers.
struct Rule {
  RuleKind kind = RuleKind::sgd;
  RuleDecay decay = RuleDecay::none;
  double weight_decay = 0;
  bool maximize = false;  ///< ascends the gradient instead
  bool nesterov = false;
  bool damped = false;  ///< SGD: the second number is the gradient's share, 1 - dampening
  std::array<double, kRuleConstants> constants{};
  std::array<double, kFixedNumbers> numbers{};  ///< used for the first numbers if an update leaves them undefined
};

/// Returns whether an update by the rule reads number k, including the rate for decay of the weights.
constexpr bool uses_number(const Rule& rule, std::size_t k) {
  return !facts_of(rule.kind).numbers[k].empty() || (k == kRate && rule.decay == RuleDecay::weights);
}

/// Addresses from which a parameter, its gradient and its states are read, and to which results are written; both may
/// be the same.
template <class T>
struct RuleRun {
  const T *w, *g;
  T* w_out;
  std::array<const T*, kRuleStates> states{};  ///< null for a state that does not exist
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

/// A function that updates n elements by a rule.
template <class T>
using RuleSweep = void (*)(const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run, std::int64_t n);

/// The kernels of a level (tensor/kernel/level.h): each function returns the sweep of a rule with a set of states, null
/// if the rule may not have them. `plain`: neither weight decay nor ascent.
struct RuleKernels {
  RuleSweep<float> (*f32)(RuleKind kind, unsigned states, bool plain);
  RuleSweep<double> (*f64)(RuleKind kind, unsigned states, bool plain);
};

}  // namespace ferrite::nn::detail
