#pragma once
/// The lines of a tensor along an axis, shared among threads as the kernels of running functions take them.
#include "ferrite/tensor/kernel/cumulative.h"
#include "ferrite/tensor/ops/detail/along_axis.h"

namespace ferrite::detail {

/// f(at, lines) for all lines of a tensor: its first element, and as many as one thread takes.
template <class F>
void each_share_of_lines(const AlongAxis& a, bool reverse, F&& f) {
  if (a.n == 0) return;
  if (a.inner == 1) {
    in_shares(a.outer, a.n, [&](std::int64_t first, std::int64_t count) { f(first * a.n, {count, a.n, 1, reverse}); });
  } else {
    in_shares(a.outer, a.n * a.inner, [&](std::int64_t first, std::int64_t count) {
      for (std::int64_t i = first; i < first + count; ++i)
        f(i * a.n * a.inner, CumulativeLines{a.inner, a.n, a.inner, reverse});
    });
  }
}

}  // namespace ferrite::detail
