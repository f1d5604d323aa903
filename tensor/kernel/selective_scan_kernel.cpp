/// The selective scan: packets across channels, some states at a time in registers, steps ascending; and its gradient.
#include "ferrite/tensor/kernel/selective_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numbers>

#include "ferrite/tensor/kernel/kernels.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/packet_exp.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

constexpr int kStates = 4;              ///< states that are in registers together
constexpr std::int64_t kTogether = 32;  ///< steps for which they are processed before the next states

/// Packets in registers.
template <int Count, class T>
using Packets = Packet<T>[static_cast<std::size_t>(Count)];

/// Loads n elements, with zeros in the other lanes.
template <class T>
[[gnu::always_inline]] inline Packet<T> take(const T* from, std::int64_t n) {
  if (n >= kLanes<T>) return Packet<T>::load(from);
  alignas(64) T part[static_cast<std::size_t>(kLanes<T>)] = {};
  std::memcpy(part, from, static_cast<std::size_t>(n) * sizeof(T));
  return Packet<T>::load(part);
}

/// Returns e^x as in packet_exp.h but with one power of two, whose exponent is taken from the last bits left by
/// rounding to an integer: 0 where that would be a denormal number, infinite from 2^127.5 on. A NaN stays, being the
/// first operand of the bounds.
[[gnu::always_inline]] inline Packet<float> decay(Packet<float> x) {
  using P = Packet<float>;
  const P bounded = first_min(first_max(x, P(-88.0F)), P(88.4F));
  const P shift = 12582912.0F + 127.0F;  // 1.5 2^23, and the exponent of 1
  const P sum = fma(bounded, P(1.44269504088896341F), shift);
  const P power = from_bits(bits_of(sum) << 23);
  return exp_reduced(less_powers(bounded, sum - shift)) * power;
}
/// Returns e^x of doubles in the same way: e^r = 1 + r + r^2 P(r) for |r| <= ln(2) / 2, off by 1.6e-17 (interpolated at
/// Chebyshev's points).
[[gnu::always_inline]] inline Packet<double> decay(Packet<double> x) {
  using P = Packet<double>;
  static constexpr double kSeries[] = {0.50000000000000011,    0.16666666666666669,    0.041666666666624164,
                                       0.008333333333330065,   0.0013888888917196719,  0.00019841269863040545,
                                       2.4801521322368692e-05, 2.7557268480310024e-06, 2.7620075879983367e-07,
                                       2.5100375832561234e-08};
  const P bounded = first_min(first_max(x, P(-709.0)), P(709.5));
  const P shift = 0x1.8p52 + 1023.0;
  const P sum = fma(bounded, P(std::numbers::log2e), shift), n = sum - shift;
  const P power = from_bits(bits_of(sum) << 52);
  // ln(2) in two parts; products with the first are exact.
  const P r = fma(n, P(-5.497923018708371e-14), fma(n, P(-0.6931471805598903), bounded));
  return (fma(r * r, polynomial(r, kSeries), r) + P(1.0)) * power;
}

/// The parts of steps of one packet of channels that do not depend on the state.
template <class T>
struct Inputs {
  static constexpr std::int64_t size = kTogether * kLanes<T>;
  alignas(64) T delta[static_cast<std::size_t>(size)];
  alignas(64) T u[static_cast<std::size_t>(size)];  ///< delta x
  alignas(64) T y[static_cast<std::size_t>(size)];  ///< sums so far
};

/// Advances `Count` states from the n-th on; A and state point to the first of them, in the packet.
template <int Count, bool Sums, class T>
[[gnu::always_inline]] inline void advance(const ScanSteps<T>& s, std::int64_t first, std::int64_t steps,
                                           std::int64_t n, const T* A, T* state, Inputs<T>& in) {
  using P = Packet<T>;
  constexpr int W = kLanes<T>;
  Packets<Count, T> a, h;
  for (int j = 0; j < Count; ++j) a[j] = P::load(A + j * s.width), h[j] = P::load(state + j * s.state_width);
  const T* B = s.B + first * s.states + n;
  const T* C = s.C + first * s.states + n;
  for (std::int64_t t = 0; t < steps; ++t, B += s.states, C += s.states) {
    const P delta = P::load(in.delta + t * W), u = P::load(in.u + t * W);
    P y;
    if constexpr (Sums) y = P::load(in.y + t * W);
#pragma GCC unroll 8
    for (int j = 0; j < Count; ++j) {
      h[j] = fma(decay(delta * a[j]), h[j], u * P(B[j]));
      if constexpr (Sums) y = fma(h[j], P(C[j]), y);
    }
    if constexpr (Sums) y.store(in.y + t * W);
  }
  for (int j = 0; j < Count; ++j) h[j].store(state + j * s.state_width);
}

template <bool Sums, class T>
void forward_steps(const ScanSteps<T>& s, T* state, T* y) {
  using P = Packet<T>;
  constexpr int W = kLanes<T>;
  Inputs<T> in;
  for (std::int64_t first = 0; first < s.steps; first += kTogether) {
    const std::int64_t steps = s.steps - first < kTogether ? s.steps - first : kTogether;
    for (std::int64_t c = 0; c < s.channels; c += W) {
      const std::int64_t lanes = s.channels - c < W ? s.channels - c : W;
      for (std::int64_t t = 0; t < steps; ++t) {
        const std::int64_t at = (first + t) * s.row + c;
        const P x = take(s.x + at, lanes), delta = take(s.delta + at, lanes);
        delta.store(in.delta + t * W);
        (delta * x).store(in.u + t * W);
        if constexpr (Sums) (s.D ? P::load(s.D + c) * x : P(T(0))).store(in.y + t * W);
      }
      for (std::int64_t n = 0; n < s.states; n += kStates)
        with_count<kStates>(s.states - n < kStates ? s.states - n : kStates, [&](auto count) {
          advance<decltype(count)::value, Sums>(s, first, steps, n, s.A + n * s.width + c,
                                                state + n * s.state_width + c, in);
        });
      if constexpr (Sums)
        for (std::int64_t t = 0; t < steps; ++t) put(y + (first + t) * s.row + c, P::load(in.y + t * W), lanes);
    }
  }
}

template <class T>
void forward(const ScanSteps<T>& s, T* state, T* y) {
  y ? forward_steps<true>(s, state, y) : forward_steps<false>(s, state, y);
}

// ---- the gradient --------------------------------------------------------------------------------------

/// Sums over channels are dealt out to as many lanes on every machine.
template <class T>
inline constexpr std::int64_t kSumLanes = kReductionLanes<T>;

/// Sums lanes: to[i] = the sum of the lanes of sum i of `count`, by halving: lane k meets lane k + half. Both arrays
/// end with a whole number of W sums.
template <class T>
void add_lanes(const T* sums, std::int64_t count, T* to) {
  constexpr std::int64_t W = kLanes<T>, L = kSumLanes<T>;
  for (std::int64_t i = 0; i < count; i += W) {
    RawPacket<T> lanes[static_cast<std::size_t>(L / W)][static_cast<std::size_t>(W)];
    for (std::int64_t part = 0; part < L / W; ++part) {
      for (std::int64_t k = 0; k < W; ++k) lanes[part][k] = load_raw(sums + (i + k) * L + part * W);
      transpose_raw(lanes[part]);
    }
    for (std::int64_t half = L / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) lanes[k / W][k % W] += lanes[(k + half) / W][(k + half) % W];
    store_raw(to + i, lanes[0][0]);
  }
}

/// The workspace of the walk back over some steps.
template <class T>
struct Walk {
  static constexpr std::size_t W = static_cast<std::size_t>(kLanes<T>), L = kSumLanes<T>, S = kScanSteps;
  alignas(64) T states[(S + 1) * kStates * W];  ///< before the first step, after each
  alignas(64) T decays[S * kStates * W];
  alignas(64) T of_B[S * kStates * L], of_C[S * kStates * L];             ///< by lane, over the packets so far
  alignas(64) T of_u[S * kScanChannels], of_exponent[S * kScanChannels];  ///< sums over states, [packet, step, lane]
};

/// Recomputes the states of a packet and their decays, for the walk back.
template <int Count, class T>
[[gnu::always_inline]] inline void recompute(const ScanSteps<T>& s, const ScanBack<T>& g, std::int64_t n,
                                             std::int64_t c, std::int64_t lanes, Walk<T>& walk) {
  using P = Packet<T>;
  constexpr int W = kLanes<T>;
  Packets<Count, T> a, h;
  for (int j = 0; j < Count; ++j) {
    a[j] = P::load(s.A + (n + j) * s.width + c), h[j] = P::load(g.before + (n + j) * s.state_width + c);
    h[j].store(walk.states + j * W);
  }
  const T* B = s.B + n;
  for (std::int64_t t = 0; t < s.steps; ++t, B += s.states) {
    const P delta = take(s.delta + t * s.row + c, lanes), u = delta * take(s.x + t * s.row + c, lanes);
#pragma GCC unroll 8
    for (int j = 0; j < Count; ++j) {
      const P e = decay(delta * a[j]);
      h[j] = fma(e, h[j], u * P(B[j]));
      e.store(walk.decays + (t * Count + j) * W);
      h[j].store(walk.states + ((t + 1) * Count + j) * W);
    }
  }
}

/// Walks back over the states n, n + 1, ... of a packet. The first packets begin the sums over channels, the first
/// states begin those over states.
template <int Count, class T>
[[gnu::always_inline]] inline void walk_back(const ScanSteps<T>& s, const ScanBack<T>& g, std::int64_t n,
                                             std::int64_t c, std::int64_t lanes, Walk<T>& walk) {
  using P = Packet<T>;
  constexpr int W = kLanes<T>;
  T *const dstate = g.dstate + n * s.state_width + c, *const dA = g.dA + n * s.state_width + c;
  Packets<Count, T> a, carry, of_a;
  for (int j = 0; j < Count; ++j) {
    a[j] = P::load(s.A + (n + j) * s.width + c), carry[j] = P::load(dstate + j * s.state_width);
    of_a[j] = P(T(0));
  }
  for (std::int64_t t = s.steps - 1; t >= 0; --t) {
    const std::int64_t row = t * s.row + c;
    const P delta = take(s.delta + row, lanes), u = delta * take(s.x + row, lanes), dy = take(g.dy + row, lanes);
    const T *const B = s.B + t * s.states + n, *const C = s.C + t * s.states + n;
    T *const of_u = walk.of_u + c * kScanSteps + t * W, *const of_exponent = walk.of_exponent + c * kScanSteps + t * W;
    P sum_u = n > 0 ? P::load(of_u) : P(T(0)), sum_exponent = n > 0 ? P::load(of_exponent) : P(T(0));
#pragma GCC unroll 8
    for (int j = 0; j < Count; ++j) {
      const std::int64_t place = (t * Count + j) * W;
      const P after = P::load(walk.states + place + Count * W), before = P::load(walk.states + place);
      const P arriving = fma(dy, P(C[j]), carry[j]);
      sum_u = fma(arriving, P(B[j]), sum_u);
      carry[j] = arriving * P::load(walk.decays + place);
      const P of_product = carry[j] * before;  // of delta A
      sum_exponent = fma(of_product, a[j], sum_exponent);
      of_a[j] = fma(of_product, delta, of_a[j]);
      const std::int64_t sum = (t * Count + j) * kSumLanes<T> + c % kSumLanes<T>;
      T *const B_lanes = walk.of_B + sum, *const C_lanes = walk.of_C + sum;
      (c >= kSumLanes<T> ? fma(arriving, u, P::load(B_lanes)) : arriving * u).store(B_lanes);
      (c >= kSumLanes<T> ? fma(dy, after, P::load(C_lanes)) : dy * after).store(C_lanes);
    }
    sum_u.store(of_u);
    sum_exponent.store(of_exponent);
  }
  for (int j = 0; j < Count; ++j) {
    carry[j].store(dstate + j * s.state_width);
    (P::load(dA + j * s.state_width) + of_a[j]).store(dA + j * s.state_width);
  }
}

/// Stores the gradients of some states' B and C from the sums by lane.
template <class T>
void store_sums(const ScanSteps<T>& s, std::int64_t n, std::int64_t count, const T* lanes, T* to) {
  alignas(64) T sums[static_cast<std::size_t>(kScanSteps * kStates + kScanPadding)];
  add_lanes(lanes, s.steps * count, sums);
  for (std::int64_t t = 0; t < s.steps; ++t)
    for (std::int64_t j = 0; j < count; ++j) to[t * s.states + n + j] = sums[t * count + j];
}

template <class T>
void backward(const ScanSteps<T>& s, const ScanBack<T>& g) {
  using P = Packet<T>;
  constexpr int W = kLanes<T>;
  Walk<T> walk;
  for (std::int64_t n = 0; n < s.states; n += kStates) {
    const std::int64_t count = s.states - n < kStates ? s.states - n : kStates;
    if (s.channels <= kSumLanes<T> - W) {  // some lanes have no channel
      std::fill_n(walk.of_B, s.steps * count * kSumLanes<T>, T(0));
      std::fill_n(walk.of_C, s.steps * count * kSumLanes<T>, T(0));
    }
    with_count<kStates>(count, [&](auto states) {
      for (std::int64_t c = 0; c < s.channels; c += W) {
        const std::int64_t lanes = s.channels - c < W ? s.channels - c : W;
        recompute<decltype(states)::value>(s, g, n, c, lanes, walk);
        walk_back<decltype(states)::value>(s, g, n, c, lanes, walk);
      }
    });
    store_sums(s, n, count, walk.of_B, g.dB);
    store_sums(s, n, count, walk.of_C, g.dC);
  }
  for (std::int64_t c = 0; c < s.channels; c += W) {
    const std::int64_t lanes = s.channels - c < W ? s.channels - c : W;
    const P skip = s.D ? P::load(s.D + c) : P(T(0));
    P of_skip(T(0));
    for (std::int64_t t = s.steps - 1; t >= 0; --t) {
      const std::int64_t row = t * s.row + c, place = c * kScanSteps + t * W;
      const P x = take(s.x + row, lanes), delta = take(s.delta + row, lanes), of_u = P::load(walk.of_u + place);
      P of_x = delta * of_u;
      if (s.D) {
        const P dy = take(g.dy + row, lanes);
        of_x = fma(skip, dy, of_x);
        of_skip = fma(x, dy, of_skip);
      }
      put(g.dx + row, of_x, lanes);
      put(g.ddelta + row, fma(x, of_u, P::load(walk.of_exponent + place)), lanes);
    }
    if (s.D) (P::load(g.dD + c) + of_skip).store(g.dD + c);
  }
}

template <class T>
constexpr SelectiveScanKernels<T> kernels_of() {
  return {.forward = forward<T>, .backward = backward<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(SelectiveScanKernels, selective_scan_kernels, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
