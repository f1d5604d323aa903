/// The sums of streams of one row.
#include "ferrite/tensor/kernel/stream_sums.h"

#include <algorithm>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <class T>
using V = Packet<T>;

/// Returns a number times a factor, rounded like a product of one term.
template <class T>
V<T> scaled(V<T> number, V<T> factor) {
  return fma(number, factor, V<T>(T(0)));
}

template <class T>
[[gnu::always_inline]] inline V<T> applied(const BehindSums<T>& behind, V<T> sum) {
  if (behind.function == CheapFunction::none) return sum;
  return behind.function == CheapFunction::relu ? Relu::f(sum) : LeakyRelu::f(sum, V<T>(behind.slope));
}

/// Processes U packets of columns, from the first to the last: their operands may be overwritten by the packets before
/// them.
template <class T, int U>
void next_few(const NextWeights<T>& w, const T* x, const T* sums, T* next, const T* added, T* y) {
  constexpr std::int64_t W = kLanes<T>;
  RawPacket<T> acc[static_cast<std::size_t>(U)];
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) acc[u] = sums ? load_raw(sums + u * W + w.units) : RawPacket<T>{};
  if (U == 1 && w.columns == 1 && w.row == 1 && !sums) {
    acc[0] = set_raw<T>(one_sum(x, w.rows, w.K));
  } else {
    const T* row = w.rows;
    for (const T* const end = x + w.K; x != end; ++x, row += w.row) {
      const RawPacket<T> value = set_raw<T>(*x);
#pragma GCC unroll 8
      for (int u = 0; u < U; ++u) acc[u] = fma_raw(value, load_raw(row + u * W), acc[u]);
    }
  }
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) {
    if (next) put(next + u * W, V<T>(acc[u]), std::min(W, w.columns - u * W));
    if (u * W >= w.outputs) continue;
    V<T> sum = acc[u];
    if (w.behind.bias) sum = sum + V<T>::load(w.behind.bias + u * W);
    if (added)
      sum = sum +
            (w.behind.factors ? scaled<T>(added[0], V<T>::load(w.behind.factors + u * W)) : V<T>::load(added + u * W));
    applied(w.behind, sum).store(y + u * W);
  }
}

/// Processes columns in groups of U packets. f64, for checks, stays small.
template <class T, int U>
void next_any(const NextWeights<T>& all, const T* x, const T* sums, T* next, const T* added, T* y) {
  const std::int64_t step = U * kLanes<T>;
  NextWeights<T> w = all;
  const auto on = [step](auto*& p) { p = p ? p + step : p; };
  for (;; w.columns -= step, w.outputs -= step) {
    if constexpr (U > 1) {
      if (packets_of<T>(w.columns) < U) {
        if (w.columns > 0)
          with_count<U - 1>(packets_of<T>(w.columns), [&](auto n) { next_few<T, n>(w, x, sums, next, added, y); });
        return;
      }
    } else if (w.columns <= 0) {
      return;
    }
    next_few<T, U>(w, x, sums, next, added, y);
    w.rows += step;
    on(sums), on(next), on(y), on(w.behind.bias), on(w.behind.factors);
    if (!w.behind.factors) on(added);
  }
}

/// Computes `channels` for some packets of steps.
template <class T>
struct ChannelSums {
  static constexpr std::int64_t W = kLanes<T>;
  const T* w;
  std::int64_t units;
  const ChannelRows<T>& x;
  std::int64_t pitch;  ///< pitch of y
  const BehindSums<T>& behind;
  const T* added;
  T* y;

  /// Computes P packets from step t on, for all outputs.
  template <int P>
  void packets(std::int64_t t) const {
    constexpr int kAtOnce = sizeof(T) == 4 ? 4 : 1;  // f64, for checks, stays small
    std::int64_t j = 0;
    for (; j + kAtOnce <= units; j += kAtOnce) outputs<P, kAtOnce>(t, j);
    if constexpr (kAtOnce > 1)
      if (j < units) with_count<kAtOnce - 1>(units - j, [&](auto left) { outputs<P, left>(t, j); });
  }
  /// Computes U outputs from j on.
  template <int P, int U>
  void outputs(std::int64_t t, std::int64_t j) const {
    RawPacket<T> acc[static_cast<std::size_t>(U)][static_cast<std::size_t>(P)];
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[u][p] = RawPacket<T>{};
    const T* row = w + j;
    for (std::int64_t tap = 0; tap < x.count; ++tap) {
      const T* from = x.taps[tap] + t;
      for (std::int64_t i = 0; i < x.channels; ++i, from += x.pitch, row += units) {
        RawPacket<T> value[static_cast<std::size_t>(P)];
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) hold_raw(value[p] = load_raw(from + p * W));
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
          const RawPacket<T> weight = set_raw<T>(row[u]);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) acc[u][p] = fma_raw(value[p], weight, acc[u][p]);
        }
      }
    }
    T* const to = y + j * pitch + t;
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u)
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) store_raw(to + u * pitch + p * W, acc[u][p]);
    for (std::int64_t u = j; u < j + U; ++u) finish(u, t, t + P * W);
  }
  /// Applies `behind` to the sums of an output: one function for all tiles keeps the code short.
  [[gnu::noinline]] void finish(std::int64_t j, std::int64_t t, std::int64_t end) const {
    const T* const row = added ? added + (behind.factors ? 0 : j * pitch) : nullptr;
    for (T* const to = y + j * pitch; t < end; t += W) {
      V<T> sum = V<T>::load(to + t);
      if (behind.bias) sum = sum + V<T>(behind.bias[j]);
      if (row) sum = sum + (behind.factors ? scaled<T>(V<T>::load(row + t), behind.factors[j]) : V<T>::load(row + t));
      applied(behind, sum).store(to + t);
    }
  }
};

template <class T>
void channels(const T* w, std::int64_t units, const ChannelRows<T>& x, std::int64_t steps, const BehindSums<T>& behind,
              const T* added, T* y) {
  constexpr std::int64_t W = kLanes<T>;
  const ChannelSums<T> of{w, units, x, packets_of<T>(steps) * W, behind, added, y};
  std::int64_t t = 0;
  if constexpr (sizeof(T) == 4) {
    if constexpr (kManyRegisters)
      for (; t + 4 * W <= of.pitch; t += 4 * W) of.template packets<4>(t);
    for (; t + 2 * W <= of.pitch; t += 2 * W) of.template packets<2>(t);
  }
  for (; t < of.pitch; t += W) of.template packets<1>(t);
}

template <class T>
void sum(const void* const* x, std::int64_t terms, std::int64_t n, T* y) {
  const auto term = [x](std::int64_t k, std::int64_t i) { return V<T>::load(static_cast<const T*>(x[k]) + i); };
  for (std::int64_t i = 0; i < n; i += kLanes<T>) {
    V<T> total = term(0, i);
    for (std::int64_t k = 1; k < terms; ++k) total = total + term(k, i);
    total.store(y + i);
  }
}

template <class T>
constexpr StreamSums<T> kernels_of() {
  constexpr int kMost = sizeof(T) == 4 ? 4 : 1;
  StreamSums<T> kernels{.next = {}, .lanes = kLanes<T>, .channels = channels<T>, .sum = sum<T>};
  for (auto& f : kernels.next) f = next_any<T, kMost>;
  if constexpr (kMost > 1)
    kernels.next[0] = next_few<T, 1>, kernels.next[1] = next_few<T, 2>, kernels.next[2] = next_few<T, 3>;
  return kernels;
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(StreamSums, stream_sums, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
