/// Sorts short rows by a network of comparisons, or by counting for every element how many come before it.
#include <algorithm>
#include <cstring>

#include "ferrite/tensor/kernel/packet.h"
#include "ferrite/tensor/kernel/ranks.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// Sorts n packets lane by lane by Batcher's odd-even merge sort (Knuth, The Art of Computer Programming 3, 5.2.2,
/// algorithm M). Comparisons with packets after the last one, which would be the largest, are left out.
void sort_lanes(double* v, std::int64_t n) {
  using P = Packet<double>;
  constexpr std::int64_t W = kLanes<double>;
  for (std::int64_t p = 1; p < n; p *= 2)
    for (std::int64_t k = p; k >= 1; k /= 2)
      for (std::int64_t j = k % p; j + k < n; j += 2 * k) {
        if ((j + k) % (2 * p) == 0) continue;  // neighbours in different blocks
        double *low = v + j * W, *high = low + k * W;
        for (std::int64_t i = 0; i < std::min(k, n - j - k); ++i, low += W, high += W) {
          const P a = P::load(low), b = P::load(high);
          first_min(a, b).store(low);
          first_max(a, b).store(high);
        }
      }
}

/// Sorts as many rows as a packet has lanes: keys and places together are the mantissas of numbers from 1 to 2, for
/// which all instruction sets have a minimum and a maximum, and of which no two are equal.
template <class T>
void sort_rows(const T* const* rows, std::int64_t count, std::int64_t n, bool descending, std::int64_t k,
               std::uint8_t* places) {
  static_assert(sizeof(order_key(T())) == 4 && kNetworkRow <= 256, "a key and a place fit into a mantissa");
  constexpr std::int64_t W = kLanes<double>;
  constexpr std::uint64_t kOne = 0x3FF0000000000000;
  alignas(64) double entries[static_cast<std::size_t>(kNetworkRow * W)];
  alignas(64) std::uint32_t keys[static_cast<std::size_t>(kNetworkRow)];
  const std::uint32_t flip = descending ? 0x7FFFFFFF : 0x80000000;  // keys become unsigned
  for (std::int64_t first = 0; first < count; first += W) {
    const std::int64_t used = std::min(W, count - first);
    for (std::int64_t lane = 0; lane < W; ++lane) {
      const T* const x = rows[first + std::min(lane, used - 1)];
      for (std::int64_t i = 0; i < n; ++i) keys[i] = static_cast<std::uint32_t>(order_key(x[i])) ^ flip;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint64_t key = keys[i];
        const std::uint64_t bits = kOne | static_cast<std::uint64_t>(key) << 8 | static_cast<std::uint64_t>(i);
        entries[i * W + lane] = __builtin_bit_cast(double, bits);
      }
    }
    sort_lanes(entries, n);
    for (std::int64_t lane = 0; lane < used; ++lane) {
      std::uint8_t* const to = places + (first + lane) * kNetworkRow;
      for (std::int64_t j = 0; j < k; ++j)
        to[j] = static_cast<std::uint8_t>(__builtin_bit_cast(std::uint64_t, entries[j * W + lane]));
    }
  }
}

/// Vectors of the compiler, which splits them into those of the instruction set.
using Keys [[gnu::vector_size(64)]] = std::int64_t;
constexpr std::int64_t kKeys = 8;

/// Counts the keys before each. A comparison of vectors is -1 where it holds: subtracted, it counts.
void count_before(const std::int64_t* keys, std::int64_t n, std::int32_t* ranks) {
  constexpr Keys kNumbers = {0, 1, 2, 3, 4, 5, 6, 7};
  for (std::int64_t first = 0; first < n; first += kKeys) {
    Keys own, count = {};
    std::memcpy(&own, keys + first, sizeof(own));
    std::int64_t j = 0;
    for (; j < first; ++j) count -= (Keys{} + keys[j]) <= own;
    const std::int64_t end = n < first + kKeys ? n : first + kKeys;
    for (; j < end; ++j) {
      const Keys other = Keys{} + keys[j];
      count -= (other < own) | ((other == own) & (kNumbers > j - first));
    }
    for (; j < n; ++j) count -= (Keys{} + keys[j]) < own;
    for (std::int64_t i = 0; i < kKeys; ++i) ranks[first + i] = static_cast<std::int32_t>(count[i]);
  }
}

template <class T>
void rank_row(const T* x, std::int64_t n, bool descending, std::int32_t* ranks) {
  alignas(64) std::int64_t keys[kShortRow] = {};
  const std::int64_t flip = descending ? -1 : 0;
  for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key(x[i]) ^ flip;
  count_before(keys, n, ranks);
}

}  // namespace

extern const RankKernels rank_kernels;
constinit const RankKernels rank_kernels = {
    .f32 = sort_rows<float>, .f64 = rank_row<double>, .i32 = sort_rows<std::int32_t>, .i64 = rank_row<std::int64_t>};

}  // namespace ferrite::detail::FERRITE_LEVEL
