/// The kernels of elementwise updates: one sweep over a parameter, its gradient and its states by the formulas of
/// rules.h.
#include <cstring>
#include <limits>
#include <utility>

#include "ferrite/nn/optim/detail/rules.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// Functions on packets that the formulas use.
template <class T>
struct PacketFunctions {
  using P = Packet<T>;
  /// Returns what `max` does, which would select twice.
  static P larger(P a, P b) { return select(is_nan(a), a, first_max(b, a)); }
  static P not_negative(P a) { return max(a, P(T(0))); }
  static P sign_of(P a) { return select(a > P(T(0)), P(T(1)), select(a < P(T(0)), P(T(-1)), a)); }
  static P choose(P flag, P a, P b) { return select(flag > P(T(0)), a, b); }

  /// Returns sqrt(v) / divisor, both correctly rounded. A sweep would wait for the divider. If multiply-add rounds
  /// once, the quotient needs no division: the reciprocal in two parts gives a quotient that is off by less than one
  /// place, and its exact remainder times the reciprocal corrects it (Markstein 1990, IBM J. Res. Dev. 34, 1). Nothing
  /// is denormal on the way, since no square root is below 2^-75 and the divisor lies in [2^-20, 1]; an infinity has no
  /// remainder.
  [[gnu::always_inline]] P root_over(P v, P divisor) const {
    const P x = sqrt(v);
    if (!by_reciprocal) return x / divisor;
    const Mask<T> finite = v < P(std::numeric_limits<T>::infinity());  // of v, which is known before the root
    const P near = fma(x, high, or_zero(finite, x * low));
    const P remainder = or_zero(finite, fma(near, minus_divisor, x));
    return fma(remainder, high, near);
  }
  /// Prepares the divisor of all n elements: for f32, its reciprocal is exactly high + low.
  [[gnu::always_inline]] void will_divide([[maybe_unused]] T divisor, [[maybe_unused]] std::int64_t n) {
    if constexpr (kRoundsOnce && std::is_same_v<T, float>) {
      constexpr std::int64_t kWorthIt = 128;  // fewer elements are divided faster
      if (n < kWorthIt || !(divisor >= 0x1p-20F && divisor <= 1)) return;
      const double exact = 1 / static_cast<double>(divisor);
      const auto upper = static_cast<float>(exact);
      high = P(upper);
      low = P(static_cast<float>(exact - static_cast<double>(upper)));
      minus_divisor = P(-divisor);
      by_reciprocal = true;
    }
  }

  P high = P(T(0)), low = P(T(0)), minus_divisor = P(T(0));
  bool by_reciprocal = false;
};

/// Calls f with constants 0 to n - 1: a compiler keeps array elements in registers only if it knows their indices.
template <std::size_t n, class F>
[[gnu::always_inline]] inline void each(const F& f) {
  [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, k>()), ...);
  }
  (std::make_index_sequence<n>());
}

/// A rule with its numbers in packets, rounded like literals of operations. The set of states (bit k: state k) is known
/// at compile time, and so is whether there is neither decay nor ascent. Everything is inlined into `run`, so that what
/// the rule does not need costs nothing.
template <RuleKind kind, unsigned states, bool plain, class T>
class Sweep {
 public:
  using P = Packet<T>;

  [[gnu::always_inline]] Sweep(const Rule& rule, RuleNumbersOf<T> numbers, std::int64_t n)
      : weight_decay_(static_cast<T>(rule.weight_decay)),
        shrink_(numbers[kRate] * static_cast<T>(rule.weight_decay)),
        decay_(rule.decay),
        maximize_(rule.maximize) {
    prepare_numbers<kind>(numbers);
    // The largest square makes the chain of operations longer, which costs more than the divider saves.
    if constexpr (kind == RuleKind::adam && !has(2)) first_.will_divide(numbers[3], n);
    if constexpr (kind == RuleKind::nadam) first_.will_divide(numbers[4], n);
    first_.nesterov = rule.nesterov;
    first_.damped = rule.damped;
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) { first_.has[k] = has(k); });
    each<kRuleConstants>([&](auto k) __attribute__((always_inline)) {
      first_.constants[k] = P(static_cast<T>(rule.constants[k]));
    });
    each<kRuleNumbers>([&](auto k) __attribute__((always_inline)) { first_.numbers[k] = P(numbers[k]); });
  }

  [[gnu::always_inline]] void run(const RuleRun<T>& run, std::int64_t n) const {
    const RuleRun<T> at = run;  // a copy: for the compiler, stores might change `run`
    std::int64_t i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) update(at, i);
    if (i < n) tail(at.from(i), static_cast<std::size_t>(n - i) * sizeof(T));
  }

 private:
  using Operands = RuleOperands<P, P, P, PacketFunctions<T>>;
  static constexpr bool has(std::size_t k) { return (states >> k & 1) != 0; }

  [[gnu::always_inline]] void update(const RuleRun<T>& at, std::int64_t i) const {
    Operands o = first_;
    o.w = P::load(at.w + i);
    o.g = P::load(at.g + i);
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) {
      if constexpr (has(k)) o.states[k] = P::load(at.states[k] + i);
    });
    if constexpr (!plain) {
      if (maximize_) o.g = -o.g;
      if (decay_ == RuleDecay::gradient) o.g = o.g + weight_decay_ * o.w;
      if (decay_ == RuleDecay::weights) o.w = o.w - shrink_ * o.w;
    }
    const P w = apply_rule<kind>(o);
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) {
      if constexpr (has(k)) o.states[k].store(at.states_out[k] + i);
    });
    w.store(at.w_out + i);
  }

  /// Updates the last elements, fewer than a packet, through full packets in local memory.
  [[gnu::always_inline]] void tail(const RuleRun<T>& at, std::size_t bytes) const {
    alignas(64) T room[2 + kRuleStates][kLanes<T>] = {};
    RuleRun<T> inside{room[0], room[1], room[0]};
    std::memcpy(room[0], at.w, bytes);
    std::memcpy(room[1], at.g, bytes);
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) {
      if constexpr (has(k)) {
        inside.states[k] = inside.states_out[k] = room[2 + k];
        std::memcpy(room[2 + k], at.states[k], bytes);
      }
    });
    update(inside, 0);
    std::memcpy(at.w_out, room[0], bytes);
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) {
      if constexpr (has(k)) std::memcpy(at.states_out[k], room[2 + k], bytes);
    });
  }

  Operands first_{};
  P weight_decay_, shrink_;
  RuleDecay decay_;
  bool maximize_;
};

/// Runs one compiled form of a rule: a separate function, small enough for the compiler to inline all it calls.
template <RuleKind kind, unsigned states, bool plain, class T>
[[gnu::noinline]] void sweep_by(const Rule& rule, const RuleNumbersOf<T>& numbers, const RuleRun<T>& run,
                                std::int64_t n) {
  Sweep<kind, states, plain, T>(rule, numbers, n).run(run, n);
}

constexpr std::size_t kSets = 8, kForms = kRules * kSets * 2;
constexpr std::size_t form_at(std::size_t kind, std::size_t states, bool plain) {
  return (kind * kSets + states) * 2 + (plain ? 1 : 0);
}

template <class T, std::size_t form>
constexpr RuleSweep<T> sweep_of_form() {
  constexpr auto kind = static_cast<RuleKind>(form / 2 / kSets);
  constexpr auto states = static_cast<unsigned>(form / 2 % kSets);
  if constexpr (has_form(kind, states)) {
    return sweep_by<kind, states, form % 2 == 1, T>;
  } else {
    return nullptr;
  }
}

/// The sweeps of all forms of all rules in kRuleFacts.
template <class T>
constexpr auto kSweeps = []<std::size_t... form>(std::index_sequence<form...>) {
  return std::array<RuleSweep<T>, kForms>{sweep_of_form<T, form>()...};
}
(std::make_index_sequence<kForms>());

template <class T>
RuleSweep<T> sweep_of(RuleKind kind, unsigned states, bool plain) {
  return states < kSets ? kSweeps<T>[form_at(static_cast<std::size_t>(kind), states, plain)] : nullptr;
}

}  // namespace

extern const RuleKernels rule_kernels;
constinit const RuleKernels rule_kernels = {sweep_of<float>, sweep_of<double>};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
