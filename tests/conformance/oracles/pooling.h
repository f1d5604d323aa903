#pragma once
/// Helpers of the oracles of pooling.
#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/windows.h"

namespace oracles {

/// Calls f(index of a result, index of an element) for every element of every window, ascending.
template <class F>
void each_held(const Shape& x, const Shape& y, const PoolAttrs& a, F&& f) {
  const PoolAxes axes = axes_of_pool(space_of(x), a);
  const int space = y.rank() - 2;
  for_each_index(y, [&](const Shape& to) {
    Shape counts, first, step;
    for (int i = 0; i < space; ++i) {
      const PoolWindow w = window_of(axes.axis[3 - space + i], to[i + 2]);
      counts.push_back((w.last - w.first + w.step - 1) / w.step);
      first.push_back(w.first);
      step.push_back(w.step);
    }
    for_each_index(counts, [&](const Shape& k) {
      Shape from{to[0], to[1]};
      for (int i = 0; i < space; ++i) from.push_back(first[i] + k[i] * step[i]);
      f(to, from);
    });
  });
}

}  // namespace oracles
