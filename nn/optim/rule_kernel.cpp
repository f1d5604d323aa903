/// The kernels of elementwise updates: one sweep over a parameter, its gradient and its states, by the formulas of
/// rules.h.
#include <cstring>
#include <utility>

#include "ferrite/nn/optim/detail/rules.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// What formulas ask of packets.
template <class T>
struct PacketFunctions {
  using P = Packet<T>;
  static P larger(P a, P b) { return max(a, b); }
  static P not_negative(P a) { return max(a, P(T(0))); }
  static P sign_of(P a) { return select(a > P(T(0)), P(T(1)), select(a < P(T(0)), P(T(-1)), a)); }
  static P choose(P flag, P a, P b) { return select(flag > P(T(0)), a, b); }
};

/// Calls f with 0 to n - 1 as constants: a compiler keeps in registers only elements of arrays whose places it knows.
template <std::size_t n, class F>
[[gnu::always_inline]] inline void each(const F& f) {
  [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, k>()), ...);
  }
  (std::make_index_sequence<n>());
}

/// A rule with its numbers in packets, rounded as literals of operations are. Which states there are is known when it
/// is compiled (bit k: state k), and whether there is neither decay nor ascent. All is inlined into `run`, so that what
/// the rule does not ask for costs nothing.
template <RuleKind kind, unsigned states, bool plain, class T>
class Sweep {
 public:
  using P = Packet<T>;

  [[gnu::always_inline]] Sweep(const Rule& rule, const std::array<T, kRuleNumbers>& numbers)
      : weight_decay_(static_cast<T>(rule.weight_decay)),
        shrink_(numbers[kShrink]),
        decay_(rule.decay),
        maximize_(rule.maximize) {
    first_.nesterov = rule.nesterov;
    first_.damped = rule.damped;
    each<kRuleStates>([&](auto k) __attribute__((always_inline)) { first_.has[k] = has(k); });
    each<kRuleConstants>([&](auto k) __attribute__((always_inline)) {
      first_.constants[k] = P(static_cast<T>(rule.constants[k]));
    });
    each<kRuleNumbers>([&](auto k) __attribute__((always_inline)) { first_.numbers[k] = P(numbers[k]); });
  }

  [[gnu::always_inline]] void run(const RuleRun<T>& run, std::int64_t n) const {
    const RuleRun<T> at = run;  // what is written may stand anywhere, for all that a compiler knows
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
      if constexpr (has(k)) o.states[k].store(at.states[k] + i);
    });
    w.store(at.w_out + i);
  }

  /// The last elements, fewer than a packet, through packets of their own.
  [[gnu::always_inline]] void tail(const RuleRun<T>& at, std::size_t bytes) const {
    alignas(64) T room[2 + kRuleStates][kLanes<T>] = {};
    RuleRun<T> inside{room[0], room[1], room[0], {}};
    std::memcpy(room[0], at.w, bytes);
    std::memcpy(room[1], at.g, bytes);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (has(k)) std::memcpy(inside.states[k] = room[2 + k], at.states[k], bytes);
    update(inside, 0);
    std::memcpy(at.w_out, room[0], bytes);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (has(k)) std::memcpy(at.states[k], room[2 + k], bytes);
  }

  Operands first_{};
  P weight_decay_, shrink_;
  RuleDecay decay_;
  bool maximize_;
};

/// Runs one compiled form of a rule. A function of its own is small enough for the compiler to inline all it calls.
template <RuleKind kind, unsigned states, bool plain, class T>
[[gnu::noinline]] void sweep_by(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run,
                                std::int64_t n) {
  Sweep<kind, states, plain, T>(rule, numbers).run(run, n);
}

template <RuleKind kind, unsigned states, class T>
void sweep_states(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run, std::int64_t n) {
  if (rule.decay == RuleDecay::none && !rule.maximize) return sweep_by<kind, states, true>(rule, numbers, run, n);
  sweep_by<kind, states, false>(rule, numbers, run, n);
}

/// Runs the form whose states are those that the run has; `choices` lists every set of states that the rule may have.
template <RuleKind kind, unsigned... choices, class T>
void sweep(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run, std::int64_t n) {
  unsigned states = 0;
  for (std::size_t k = 0; k < kRuleStates; ++k) states |= (run.states[k] ? 1U : 0U) << k;
  ((states == choices ? sweep_states<kind, choices>(rule, numbers, run, n) : void()), ...);
}

template <class T>
void update(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run, std::int64_t n) {
  switch (rule.kind) {
    case RuleKind::sgd: return sweep<RuleKind::sgd, 0, 1>(rule, numbers, run, n);
    case RuleKind::rmsprop: return sweep<RuleKind::rmsprop, 1, 3, 5, 7>(rule, numbers, run, n);
    case RuleKind::adam: return sweep<RuleKind::adam, 3, 7>(rule, numbers, run, n);
    case RuleKind::nadam: return sweep<RuleKind::nadam, 3>(rule, numbers, run, n);
    case RuleKind::radam: return sweep<RuleKind::radam, 3>(rule, numbers, run, n);
    case RuleKind::adamax: return sweep<RuleKind::adamax, 3>(rule, numbers, run, n);
    case RuleKind::adagrad: return sweep<RuleKind::adagrad, 1>(rule, numbers, run, n);
    case RuleKind::adadelta: return sweep<RuleKind::adadelta, 3>(rule, numbers, run, n);
    case RuleKind::lion: return sweep<RuleKind::lion, 1>(rule, numbers, run, n);
  }
}

}  // namespace

extern const RuleKernels rule_kernels;
constinit const RuleKernels rule_kernels = {update<float>, update<double>};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
