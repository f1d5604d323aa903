#pragma once
/// How the sweep of an optimiser over the elements of a parameter is shared among threads.
#include <algorithm>
#include <cstdint>

#include "ferrite/tensor/threads.h"

namespace ferrite::nn::detail {

constexpr std::int64_t kShare = 1 << 15;  ///< elements

/// Whether a sweep over n elements is worth more than one share.
constexpr bool is_shared(std::int64_t n) { return n >= 2 * kShare; }

/// f(first element, number of elements) for adjacent shares of n elements.
template <class F>
void each_share(std::int64_t n, const F& f) {
  ferrite::detail::parallel_for((n + kShare - 1) / kShare,
                                [&](std::int64_t k) { f(k * kShare, std::min(kShare, n - k * kShare)); });
}

}  // namespace ferrite::nn::detail
