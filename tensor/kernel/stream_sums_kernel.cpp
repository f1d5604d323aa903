/// The sums of streams of one row.
#include "ferrite/tensor/kernel/stream_sums.h"

#include <algorithm>

#include "ferrite/tensor/kernel/functors.h"
#include "ferrite/tensor/kernel/tile.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

template <class T>
using V = Packet<T>;

/// A number times a factor, as a product of one term rounds it.
template <class T>
V<T> scaled(V<T> number, V<T> factor) {
  return fma(number, factor, V<T>(T(0)));
}

template <class T>
[[gnu::always_inline]] inline V<T> applied(const BehindSums<T>& behind, V<T> sum) {
  if (behind.function == CheapFunction::none) return sum;
  return behind.function == CheapFunction::relu ? Relu::f(sum) : LeakyRelu::f(sum, V<T>(behind.slope));
}

/// U packets of columns from `block` on, from the first to the last: what they read may be written by those before.
template <class T, int U>
[[gnu::always_inline]] inline void next_packets(const NextWeights<T>& w, std::int64_t block, const T* x, const T* sums,
                                                T* next, const T* added, T* y) {
  constexpr std::int64_t W = kLanes<T>;
  RawPacket<T> acc[static_cast<std::size_t>(U)];
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) acc[u] = sums ? load_raw(sums + (block + u) * W + w.units) : RawPacket<T>{};
  const T* row = w.rows + block * W;
  for (const T* const end = x + w.K; x != end; ++x, row += w.columns) {
    const RawPacket<T> value = set_raw<T>(*x);
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) acc[u] = fma_raw(value, load_raw(row + u * W), acc[u]);
  }
  if (next)
#pragma GCC unroll 8
    for (int u = 0; u < U; ++u) {
      const std::int64_t j = (block + u) * W;
      put(next + j, V<T>(acc[u]), std::min(W, w.columns - j));
    }
#pragma GCC unroll 8
  for (int u = 0; u < U; ++u) {
    const std::int64_t j = (block + u) * W;
    if (j >= w.units) return;
    V<T> sum = acc[u];
    if (w.behind.bias) sum = sum + V<T>::load(w.behind.bias + j);
    if (added)
      sum = sum + (w.behind.factors ? scaled<T>(added[0], V<T>::load(w.behind.factors + j)) : V<T>::load(added + j));
    applied(w.behind, sum).store(y + j);
  }
}

template <class T, int U>
void next_few(const NextWeights<T>& w, const T* x, const T* sums, T* next, const T* added, T* y) {
  next_packets<T, U>(w, 0, x, sums, next, added, y);
}
template <class T>
void next_any(const NextWeights<T>& w, const T* x, const T* sums, T* next, const T* added, T* y) {
  const std::int64_t blocks = packets_of<T>(w.columns);
  std::int64_t block = 0;
  for (; block + 8 <= blocks; block += 8) next_packets<T, 8>(w, block, x, sums, next, added, y);
  if (block < blocks)
    with_count<7>(blocks - block, [&](auto left) { next_packets<T, left>(w, block, x, sums, next, added, y); });
}

/// The same packet, loaded once: g++ would read it again for each product, most times across two lines.
template <class T>
[[gnu::always_inline]] inline RawPacket<T> in_register(RawPacket<T> v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

/// `channels` of some packets of steps.
template <class T>
struct ChannelSums {
  static constexpr std::int64_t W = kLanes<T>;
  static constexpr int kMost = kManyRegisters ? 4 : 2;  ///< packets of steps
  const T* w;
  std::int64_t units;
  const ChannelRows<T>& x;
  std::int64_t pitch;  ///< of y
  const BehindSums<T>& behind;
  const T* added;
  T* y;

  /// P packets from step t on, of all outputs.
  template <int P>
  void packets(std::int64_t t) const {
    std::int64_t j = 0;
    for (; j + 4 <= units; j += 4) outputs<P, 4>(t, j);
    if (j < units) with_count<3>(units - j, [&](auto left) { outputs<P, left>(t, j); });
  }
  /// U outputs from j on.
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
        for (int p = 0; p < P; ++p) value[p] = in_register<T>(load_raw(from + p * W));
#pragma GCC unroll 4
        for (int u = 0; u < U; ++u) {
          const RawPacket<T> weight = set_raw<T>(row[u]);
#pragma GCC unroll 4
          for (int p = 0; p < P; ++p) acc[u][p] = fma_raw(value[p], weight, acc[u][p]);
        }
      }
    }
#pragma GCC unroll 4
    for (int u = 0; u < U; ++u) {
      T* const to = y + (j + u) * pitch + t;
      if (behind.bias)
#pragma GCC unroll 4
        for (int p = 0; p < P; ++p) acc[u][p] = acc[u][p] + set_raw<T>(behind.bias[j + u]);
      if (added) add<P>(t, j + u, acc[u]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) applied(behind, V<T>(acc[u][p])).store(to + p * W);
    }
  }
  template <int P>
  [[gnu::always_inline]] void add(std::int64_t t, std::int64_t j, RawPacket<T>* sums) const {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p)
      sums[p] = sums[p] + (behind.factors ? scaled<T>(V<T>::load(added + t + p * W), behind.factors[j])
                                          : V<T>::load(added + j * pitch + t + p * W))
                              .raw;
  }
};

template <class T>
void channels(const T* w, std::int64_t units, const ChannelRows<T>& x, std::int64_t steps, const BehindSums<T>& behind,
              const T* added, T* y) {
  constexpr std::int64_t W = kLanes<T>;
  const ChannelSums<T> of{w, units, x, packets_of<T>(steps) * W, behind, added, y};
  std::int64_t t = 0;
  if constexpr (ChannelSums<T>::kMost == 4)
    for (; t + 4 * W <= of.pitch; t += 4 * W) of.template packets<4>(t);
  for (; t + 2 * W <= of.pitch; t += 2 * W) of.template packets<2>(t);
  if (t < of.pitch) of.template packets<1>(t);
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
  return {.next = {next_few<T, 1>, next_few<T, 2>, next_few<T, 3>, next_few<T, 4>, next_few<T, 5>, next_few<T, 6>,
                   next_few<T, 7>, next_any<T>},
          .lanes = kLanes<T>,
          .channels = channels<T>,
          .sum = sum<T>};
}

}  // namespace

FERRITE_DEFINE_FLOAT_TABLES(StreamSums, stream_sums, kernels_of)

}  // namespace ferrite::detail::FERRITE_LEVEL
