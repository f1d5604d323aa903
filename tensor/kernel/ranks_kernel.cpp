/// Short rows sorted by counting: for every element, how many come before it.
#include <cstring>

#include "ferrite/tensor/kernel/level.h"
#include "ferrite/tensor/kernel/ranks.h"

namespace ferrite::detail::FERRITE_LEVEL {
namespace {

/// Vectors of the compiler, which divides them into what the instruction set has.
template <class Key>
struct KeysOf;
template <>
struct KeysOf<std::int32_t> {
  using Type [[gnu::vector_size(64)]] = std::int32_t;
  static constexpr Type numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
};
template <>
struct KeysOf<std::int64_t> {
  using Type [[gnu::vector_size(64)]] = std::int64_t;
  static constexpr Type numbers = {0, 1, 2, 3, 4, 5, 6, 7};
};

/// A comparison of vectors is -1 where it holds: subtracted, it counts.
template <class Key>
void count_before(const Key* keys, std::int64_t n, std::int32_t* ranks) {
  using Keys = typename KeysOf<Key>::Type;
  constexpr std::int64_t kLanes = 64 / sizeof(Key);
  for (std::int64_t first = 0; first < n; first += kLanes) {
    Keys own, count = {};
    std::memcpy(&own, keys + first, sizeof(own));
    std::int64_t j = 0;
    for (; j < first; ++j) count -= (Keys{} + keys[j]) <= own;
    const std::int64_t end = n < first + kLanes ? n : first + kLanes;
    for (; j < end; ++j) {
      const Keys other = Keys{} + keys[j];
      count -= (other < own) | ((other == own) & (KeysOf<Key>::numbers > static_cast<Key>(j - first)));
    }
    for (; j < n; ++j) count -= (Keys{} + keys[j]) < own;
    for (std::int64_t i = 0; i < kLanes; ++i) ranks[first + i] = static_cast<std::int32_t>(count[i]);
  }
}

template <class T>
void rank_row(const T* x, std::int64_t n, bool descending, std::int32_t* ranks) {
  using Key = decltype(order_key(T()));
  alignas(64) Key keys[kShortRow] = {};
  const Key flip = descending ? Key(-1) : Key(0);
  for (std::int64_t i = 0; i < n; ++i) keys[i] = order_key(x[i]) ^ flip;
  count_before(keys, n, ranks);
}

}  // namespace

extern const RankKernels rank_kernels;
constinit const RankKernels rank_kernels = {
    .f32 = rank_row<float>, .f64 = rank_row<double>, .i32 = rank_row<std::int32_t>, .i64 = rank_row<std::int64_t>};

}  // namespace ferrite::detail::FERRITE_LEVEL
