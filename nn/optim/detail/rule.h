#pragma once
/// What the kernels of elementwise updates take: which rule, its constants, the numbers of one update, pointers to
/// elements.
#include <array>
#include <cstddef>
#include <cstdint>

namespace ferrite::nn::detail {

enum class RuleKind : std::uint8_t { sgd, rmsprop, adam, nadam, radam, adamax, adagrad, adadelta, lion };

/// Where weight decay enters.
enum class RuleDecay : std::uint8_t {
  none,
  gradient,  ///< g += weight_decay w
  weights,   ///< w -= rate weight_decay w before the update
};

inline constexpr std::size_t kRuleStates = 3, kRuleConstants = 3, kRuleNumbers = 6;
/// The place of rate * weight_decay among the numbers of an update.
inline constexpr std::size_t kShrink = kRuleNumbers - 1;

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
  std::array<double, kRuleNumbers> numbers{};  ///< stand in for those that an update leaves undefined
};

/// Where the elements of a parameter, its gradient and its states lie. States are written over, and w where w_out is
/// it.
template <class T>
struct RuleRun {
  const T *w, *g;
  T* w_out;
  std::array<T*, kRuleStates> states;  ///< null: there is none

  RuleRun from(std::int64_t at) const {
    RuleRun moved{w + at, g + at, w_out + at, states};
    for (T*& s : moved.states) s = s ? s + at : s;
    return moved;
  }
};

/// What a level has of it (tensor/kernel/level.h).
struct RuleKernels {
  void (*f32)(const Rule& rule, const std::array<float, kRuleNumbers>& numbers, const RuleRun<float>& run,
              std::int64_t n);
  void (*f64)(const Rule& rule, const std::array<double, kRuleNumbers>& numbers, const RuleRun<double>& run,
              std::int64_t n);
};

}  // namespace ferrite::nn::detail
