/// The recurrences of the minimal GRU and LSTM: packets across units, steps in order.
#include <algorithm>
#include <utility>

#include "ferrite/nn/recurrent/detail/minimal.h"
#include "ferrite/tensor/kernel/lanes_within.h"
#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/packet_exp.h"

namespace ferrite::nn::detail::FERRITE_LEVEL {
namespace {

using namespace ferrite::detail::FERRITE_LEVEL;

/// The candidate g(c), which is positive for all c, and its slope.
template <class T>
struct Candidate {
  explicit Candidate(Packet<T> c)
      : above(c >= Packet<T>(T(0))), low(sigmoid(c)), value(select(above, c + T(0.5), low)) {}
  Packet<T> slope() const { return select(above, Packet<T>(T(1)), low * (Packet<T>(T(1)) - low)); }
  Mask<T> above;
  Packet<T> low, value;
};

struct Gru {
  static constexpr unsigned gates = 2;
  template <class T>
  static Packet<T> step(const Packet<T> (&g)[2], Packet<T> h) {
    return fma(sigmoid(g[1]), Candidate<T>(g[0]).value - h, h);
  }
  /// Computes the cotangents of the gates and of h before the step from that of h after it.
  template <class T>
  static Packet<T> back(const Packet<T> (&g)[2], Packet<T> h, Packet<T> dh, Packet<T> (&dg)[2]) {
    const Candidate<T> c(g[0]);
    const Packet<T> z = sigmoid(g[1]), rest = Packet<T>(T(1)) - z;
    dg[0] = dh * z * c.slope();
    dg[1] = dh * (c.value - h) * (z * rest);
    return dh * rest;
  }
};

struct Lstm {
  static constexpr unsigned gates = 3;

  /// sigmoid(f) / (sigmoid(f) + sigmoid(i)), its complement, sigmoid(-f) and sigmoid(-i). With 1 / sigmoid(x) = 1 +
  /// e^-x, all e^-x are multiplied by e^m, so that none overflows.
  template <class T>
  struct Shares {
    Shares(Packet<T> f, Packet<T> i) {
      const Packet<T> m = min(min(f, i), T(0));
      const Packet<T> one = exp(m), of_f = exp(m - f), of_i = exp(m - i);
      const Packet<T> inverse_f = one + of_f, inverse_i = one + of_i;
      const Packet<T> both = inverse_f + inverse_i;
      forget = inverse_i / both;
      input = inverse_f / both;
      not_f = T(1) / (T(1) + exp(f));  // of_f / inverse_f is 0 / 0 where i is far below f
      not_i = T(1) / (T(1) + exp(i));
    }
    Packet<T> forget, input, not_f, not_i;
  };
  template <class T>
  static Packet<T> step(const Packet<T> (&g)[3], Packet<T> h) {
    const Packet<T> c = Candidate<T>(g[0]).value;
    return fma(Shares<T>(g[1], g[2]).forget, h - c, c);
  }
  template <class T>
  static Packet<T> back(const Packet<T> (&g)[3], Packet<T> h, Packet<T> dh, Packet<T> (&dg)[3]) {
    const Candidate<T> c(g[0]);
    const Shares<T> s(g[1], g[2]);
    const Packet<T> of_share = dh * (h - c.value) * (s.forget * s.input);
    dg[0] = dh * s.input * c.slope();
    dg[1] = of_share * s.not_f;
    dg[2] = -(of_share * s.not_i);
    return dh * s.forget;
  }
};

/// Whole packets of units; the last one overlaps the one before it, so that it ends with the last unit.
template <class T>
struct Whole {
  std::int64_t H;
  std::int64_t at(std::int64_t p) const { return std::min(p * kLanes<T>, H - kLanes<T>); }
  Packet<T> load(const T* from, std::int64_t p) const { return Packet<T>::load(from + at(p)); }
  void store(T* to, std::int64_t p, Packet<T> v) const { v.store(to + at(p)); }
};
template <class T>
struct Part {
  LanesWithin<T> lanes;
  Packet<T> load(const T* from, std::int64_t) const { return lanes.load(from); }
  void store(T* to, std::int64_t, Packet<T> v) const { lanes.store(to, v); }
};

template <class Cell, class T, class Lanes>
[[gnu::always_inline]] inline void load_gates(const Lanes& lanes, const T* from, std::int64_t H, std::int64_t p,
                                              Packet<T> (&g)[Cell::gates]) {
  for (unsigned k = 0; k < Cell::gates; ++k) g[k] = lanes.load(from + k * H, p);
}

template <class Cell, class T, class Lanes>
void scan_packets(const MinimalRow<T>& row, const Lanes& lanes, std::int64_t packets, T* h) {
  const T* before = row.h0;
  for (std::int64_t t = 0; t < row.steps; ++t) {
    const T* gates = row.gates + t * row.gates_step;
    T* to = h + t * row.h_step;
    if (row.resets && row.resets[t]) before = nullptr;
    for (std::int64_t p = 0; p < packets; ++p) {
      Packet<T> g[Cell::gates];
      load_gates<Cell>(lanes, gates, row.H, p, g);
      lanes.store(to, p, Cell::step(g, before ? lanes.load(before, p) : Packet<T>(T(0))));
    }
    before = to;
  }
}

template <class T>
struct Gradient {
  const T *h, *dh;
  T *dgates, *dh0, *room;
};

template <class Cell, class T, class Lanes>
void gradient_packets(const MinimalRow<T>& row, const Lanes& lanes, std::int64_t packets, const Gradient<T>& o) {
  const Packet<T> zero = T(0);
  T *arriving = o.room, *next = o.room + row.H;  // cotangents from the step after
  bool arrives = false;
  for (std::int64_t t = row.steps - 1; t >= 0; --t) {
    const T *gates = row.gates + t * row.gates_step, *dh = o.dh + t * row.h_step;
    T* dgates = o.dgates + t * row.gates_step;
    const bool fresh = row.resets && row.resets[t];
    const T* before = fresh ? nullptr : t == 0 ? row.h0 : o.h + (t - 1) * row.h_step;
    for (std::int64_t p = packets - 1; p >= 0; --p) {  // backward like the steps: caches prefetch in one direction
      Packet<T> g[Cell::gates], dg[Cell::gates];
      load_gates<Cell>(lanes, gates, row.H, p, g);
      Packet<T> now = lanes.load(dh, p);
      if (arrives) now = now + lanes.load(arriving, p);
      lanes.store(next, p, Cell::back(g, before ? lanes.load(before, p) : zero, now, dg));
      for (unsigned k = 0; k < Cell::gates; ++k) lanes.store(dgates + k * row.H, p, dg[k]);
    }
    std::swap(arriving, next);
    arrives = !fresh;
  }
  for (std::int64_t p = 0; p < packets && o.dh0; ++p) lanes.store(o.dh0, p, arrives ? lanes.load(arriving, p) : zero);
}

/// Calls f(lanes, packets) with the lanes and the number of packets of H units.
template <class T, class F>
void with_lanes(std::int64_t H, const F& f) {
  constexpr std::int64_t W = kLanes<T>;
  if (H < W) return f(Part<T>{LanesWithin<T>(0, H)}, std::int64_t{1});
  f(Whole<T>{H}, (H + W - 1) / W);
}

template <class Cell, class T>
void scan(const MinimalRow<T>& row, T* h) {
  with_lanes<T>(row.H, [&](const auto& lanes, std::int64_t n) { scan_packets<Cell>(row, lanes, n, h); });
}
template <class Cell, class T>
void gradient(const MinimalRow<T>& row, const T* h, const T* dh, T* dgates, T* dh0, T* room) {
  const Gradient<T> o{h, dh, dgates, dh0, room};
  with_lanes<T>(row.H, [&](const auto& lanes, std::int64_t n) { gradient_packets<Cell>(row, lanes, n, o); });
}

template <class T>
constexpr MinimalKernels<T> of_gru() {
  return {scan<Gru, T>, gradient<Gru, T>};
}
template <class T>
constexpr MinimalKernels<T> of_lstm() {
  return {scan<Lstm, T>, gradient<Lstm, T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(MinimalKernels, min_gru_kernels, of_gru)
FERRITE_DEFINE_FLOAT_TABLES(MinimalKernels, min_lstm_kernels, of_lstm)

}  // namespace ferrite::nn::detail::FERRITE_LEVEL
