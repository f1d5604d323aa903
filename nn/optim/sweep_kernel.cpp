/// The kernels of RMSprop and of stochastic gradient descent: one sweep over a parameter, its gradient and its states,
/// with the bits of the operations in rmsprop.cpp and sgd.cpp.
#include <cstring>

#include "ferrite/nn/optim/detail/sweep_kernel.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// An update with its numbers in packets, rounded as literals of operations are. What it leaves out is asked for each
/// packet: the answer is always the same, so that the processor foresees it.
template <class T>
class Sweep {
 public:
  using P = Packet<T>;
  Sweep(const SweepRule& r, T rate)
      : rate_(rate),
        weight_decay_(static_cast<T>(r.weight_decay)),
        momentum_(static_cast<T>(r.momentum)),
        alpha_(static_cast<T>(r.alpha)),
        rest_(static_cast<T>(1 - r.alpha)),
        epsilon_(static_cast<T>(r.epsilon)),
        decays_(r.weight_decay > 0),
        nesterov_(r.nesterov) {}

  template <SweepKind kind>
  void run(const SweepRun<T>& run, std::int64_t n) const {
    const SweepRun<T> at = run;  // what is written may stand anywhere, for all that a compiler knows
    std::int64_t i = 0;
    for (; i + kLanes<T> <= n; i += kLanes<T>) update<kind>(at, i);
    if (i < n) tail<kind>(at.from(i), static_cast<std::size_t>(n - i) * sizeof(T));
  }

 private:
  template <SweepKind kind>
  [[gnu::always_inline]] void update(const SweepRun<T>& at, std::int64_t i) const {
    const P w = P::load(at.w + i);
    P g = P::load(at.g + i);
    if (decays_) g = g + weight_decay_ * w;
    const P direction = kind == SweepKind::sgd ? by_velocity(g, at, i) : by_squares(g, at, i);
    (w - rate_ * direction).store(at.w_out + i);
  }

  [[gnu::always_inline]] P by_velocity(P g, const SweepRun<T>& at, std::int64_t i) const {
    if (!at.velocity) return g;
    const P v = moved(g, at, i);
    return nesterov_ ? g + momentum_ * v : v;
  }

  [[gnu::always_inline]] P by_squares(P g, const SweepRun<T>& at, std::int64_t i) const {
    P variance = alpha_ * P::load(at.square + i) + rest_ * (g * g);
    variance.store(at.square + i);
    if (at.mean) {
      const P before = P::load(at.mean + i);
      const P mean = before + rest_ * (g - before);
      mean.store(at.mean + i);
      variance = max(variance - mean * mean, P(T(0)));
    }
    const P direction = g / (sqrt(variance) + epsilon_);
    return at.velocity ? moved(direction, at, i) : direction;
  }

  [[gnu::always_inline]] P moved(P direction, const SweepRun<T>& at, std::int64_t i) const {
    const P v = momentum_ * P::load(at.velocity + i) + direction;
    v.store(at.velocity + i);
    return v;
  }

  /// The last elements, fewer than a packet, through packets of their own.
  template <SweepKind kind>
  void tail(const SweepRun<T>& at, std::size_t bytes) const {
    alignas(64) T room[5][kLanes<T>] = {};
    const T* const from[5] = {at.w, at.g, at.square, at.mean, at.velocity};
    T* const to[5] = {at.w_out, nullptr, at.square, at.mean, at.velocity};
    for (std::size_t j = 0; j < 5; ++j)
      if (from[j]) std::memcpy(room[j], from[j], bytes);
    const auto state = [&](std::size_t j) { return from[j] ? room[j] : nullptr; };
    update<kind>({room[0], room[1], room[0], state(2), state(3), state(4)}, 0);
    for (std::size_t j = 0; j < 5; ++j)
      if (to[j]) std::memcpy(to[j], room[j], bytes);
  }

  P rate_, weight_decay_, momentum_, alpha_, rest_, epsilon_;
  bool decays_, nesterov_;
};

template <class T>
void update(const SweepRule& rule, T rate, const SweepRun<T>& run, std::int64_t n) {
  const Sweep<T> sweep(rule, rate);
  if (rule.kind == SweepKind::sgd) return sweep.template run<SweepKind::sgd>(run, n);
  sweep.template run<SweepKind::rmsprop>(run, n);
}

}  // namespace

extern const SweepKernels sweep_kernels;
constinit const SweepKernels sweep_kernels = {update<float>, update<double>};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
