/// The kernel of Adam's update: one sweep over a parameter, its gradient and its moments.
#include <cstring>
#include <limits>

#include "ferrite/nn/optim/detail/adam_kernel.h"
#include "ferrite/tensor/kernel/packet.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// The numbers of an update in packets, read once: what is written may stand anywhere, for all that a compiler knows.
template <class T>
struct Repeated {
  explicit Repeated(const AdamNumbers<T>& k)
      : beta1(k.beta1),
        rest1(k.rest1),
        beta2(k.beta2),
        rest2(k.rest2),
        epsilon(k.epsilon),
        weight_decay(k.weight_decay),
        shrink(k.shrink),
        root2(k.root2),
        minus_root2(-k.root2),
        pace(k.pace),
        high(k.high),
        low(k.low),
        reciprocal(kRoundsOnce && k.reciprocal) {}
  Packet<T> beta1, rest1, beta2, rest2, epsilon, weight_decay, shrink, root2, minus_root2, pace, high, low;
  bool reciprocal;
};

/// sqrt(v) / root2, both correctly rounded. The kernel waits for the divider; where a multiply-add rounds once, this
/// quotient is had without it: from the reciprocal in two parts a quotient that is off by less than one place, then its
/// exact remainder times the reciprocal (Markstein 1990, IBM J. Res. Dev. 34, 1). Nothing is denormal on the way, since
/// no square root is below 2^-75 and root2 lies in [2^-20, 1]; an infinity has no remainder.
template <class T>
[[gnu::always_inline]] inline Packet<T> root_over_root(Packet<T> v, const Repeated<T>& k) {
  using P = Packet<T>;
  const P x = sqrt(v);
  if (!k.reciprocal) return x / k.root2;
  const Mask<T> finite = v < P(std::numeric_limits<T>::infinity());  // of v: it is known before the root is
  const P near = fma(x, k.high, or_zero(finite, x * k.low));
  const P remainder = or_zero(finite, fma(near, k.minus_root2, x));
  return fma(remainder, k.high, near);
}

template <class T, Decay kind>
[[gnu::always_inline]] inline void update_packet(const Repeated<T>& k, const AdamRun<T>& at) {
  using P = Packet<T>;
  P w = P::load(at.w);
  P g = P::load(at.g);
  if constexpr (kind == Decay::gradient) g = g + k.weight_decay * w;
  if constexpr (kind == Decay::weights) w = w - k.shrink * w;
  const P m = k.beta1 * P::load(at.m) + k.rest1 * g;
  const P v = k.beta2 * P::load(at.v) + k.rest2 * (g * g);
  m.store(at.m_out);
  v.store(at.v_out);
  const P denominator = root_over_root(v, k) + k.epsilon;
  (w - k.pace * (m / denominator)).store(at.w_out);
}

/// The last elements, fewer than a packet, through packets of their own.
template <class T, Decay kind>
void update_tail(const Repeated<T>& k, const AdamRun<T>& at, std::int64_t n) {
  alignas(64) T in[4][kLanes<T>] = {};
  alignas(64) T out[3][kLanes<T>];
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(T);
  const T* const from[4] = {at.w, at.g, at.m, at.v};
  for (std::size_t j = 0; j < 4; ++j) std::memcpy(in[j], from[j], bytes);
  update_packet<T, kind>(k, {in[0], in[1], in[2], in[3], out[0], out[1], out[2]});
  T* const to[3] = {at.w_out, at.m_out, at.v_out};
  for (std::size_t j = 0; j < 3; ++j) std::memcpy(to[j], out[j], bytes);
}

template <class T, Decay kind>
void update_run(const AdamNumbers<T>& numbers, const AdamRun<T>& run, std::int64_t n) {
  const Repeated<T> k(numbers);
  std::int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) update_packet<T, kind>(k, run.from(i));
  if (i < n) update_tail<T, kind>(k, run.from(i), n - i);
}

template <class T>
void update(const AdamNumbers<T>& k, const AdamRun<T>& run, std::int64_t n) {
  switch (k.decay) {
    case Decay::none: return update_run<T, Decay::none>(k, run, n);
    case Decay::gradient: return update_run<T, Decay::gradient>(k, run, n);
    case Decay::weights: return update_run<T, Decay::weights>(k, run, n);
  }
}

}  // namespace

extern const AdamKernels adam_kernels;
constinit const AdamKernels adam_kernels = {update<float>, update<double>};

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
