/// The kernels of elementwise updates: one sweep over a parameter, its gradient and its states, by the formulas of
/// rules.h.
#include <cstring>

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

/// A rule with its numbers in packets, rounded as literals of operations are. What it leaves out is asked for each
/// packet: the answer is always the same, so that the processor foresees it.
template <RuleKind kind, class T>
class Sweep {
 public:
  using P = Packet<T>;

  Sweep(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run)
      : weight_decay_(static_cast<T>(rule.weight_decay)),
        shrink_(numbers[kShrink]),
        decay_(rule.decay),
        maximize_(rule.maximize) {
    first_.nesterov = rule.nesterov;
    for (std::size_t k = 0; k < kRuleStates; ++k) first_.has[k] = run.states[k] != nullptr;
    for (std::size_t k = 0; k < kRuleConstants; ++k) first_.constants[k] = P(static_cast<T>(rule.constants[k]));
    for (std::size_t k = 0; k < kRuleNumbers; ++k) first_.numbers[k] = P(numbers[k]);
  }

  void run(const RuleRun<T>& run, std::int64_t n) const {
    const RuleRun<T> at = run;  // what is written may stand anywhere, for all that a compiler knows
    std::int64_t i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) update(at, i);
    if (i < n) tail(at.from(i), static_cast<std::size_t>(n - i) * sizeof(T));
  }

 private:
  using Operands = RuleOperands<P, P, P, PacketFunctions<T>>;

  [[gnu::always_inline]] void update(const RuleRun<T>& at, std::int64_t i) const {
    Operands o = first_;
    o.w = P::load(at.w + i);
    o.g = P::load(at.g + i);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (o.has[k]) o.states[k] = P::load(at.states[k] + i);
    if (maximize_) o.g = -o.g;
    if (decay_ == RuleDecay::gradient) o.g = o.g + weight_decay_ * o.w;
    if (decay_ == RuleDecay::weights) o.w = o.w - shrink_ * o.w;
    const P w = apply_rule<kind>(o);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (o.has[k]) o.states[k].store(at.states[k] + i);
    w.store(at.w_out + i);
  }

  /// The last elements, fewer than a packet, through packets of their own.
  void tail(const RuleRun<T>& at, std::size_t bytes) const {
    alignas(64) T room[2 + kRuleStates][kLanes<T>] = {};
    RuleRun<T> inside{room[0], room[1], room[0], {}};
    std::memcpy(room[0], at.w, bytes);
    std::memcpy(room[1], at.g, bytes);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (at.states[k]) std::memcpy(inside.states[k] = room[2 + k], at.states[k], bytes);
    update(inside, 0);
    std::memcpy(at.w_out, room[0], bytes);
    for (std::size_t k = 0; k < kRuleStates; ++k)
      if (at.states[k]) std::memcpy(at.states[k], room[2 + k], bytes);
  }

  Operands first_{};
  P weight_decay_, shrink_;
  RuleDecay decay_;
  bool maximize_;
};

template <RuleKind kind, class T>
void sweep(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run, std::int64_t n) {
  Sweep<kind, T>(rule, numbers, run).run(run, n);
}

template <class T>
void update(const Rule& rule, const std::array<T, kRuleNumbers>& numbers, const RuleRun<T>& run, std::int64_t n) {
  switch (rule.kind) {
    case RuleKind::sgd: return sweep<RuleKind::sgd>(rule, numbers, run, n);
    case RuleKind::rmsprop: return sweep<RuleKind::rmsprop>(rule, numbers, run, n);
    case RuleKind::adam: return sweep<RuleKind::adam>(rule, numbers, run, n);
    case RuleKind::nadam: return sweep<RuleKind::nadam>(rule, numbers, run, n);
    case RuleKind::radam: return sweep<RuleKind::radam>(rule, numbers, run, n);
    case RuleKind::adamax: return sweep<RuleKind::adamax>(rule, numbers, run, n);
    case RuleKind::adagrad: return sweep<RuleKind::adagrad>(rule, numbers, run, n);
    case RuleKind::adadelta: return sweep<RuleKind::adadelta>(rule, numbers, run, n);
    case RuleKind::lion: return sweep<RuleKind::lion>(rule, numbers, run, n);
  }
}

}  // namespace

extern const RuleKernels rule_kernels;
constinit const RuleKernels rule_kernels = {update<float>, update<double>};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
