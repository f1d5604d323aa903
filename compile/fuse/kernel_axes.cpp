/// The axes that a kernel runs over: merged where everything that it reads and writes allows it.
#include <algorithm>

#include "ferrite/compile/fuse/detail/kernel_stages.h"

namespace ferrite::detail {
namespace {

using Axes = Kernel::Axes;
using Memory = Kernel::Memory;

void each_strides(Memory& m, const auto& f) {
  for (Kernel::Load& l : m.loads) f(l.strides, l.of_rows);
  for (Kernel::Store& s : m.stores) f(s.strides, s.of_rows);
}
void each_box(Memory& m, const auto& f) {
  for (Kernel::Load& l : m.loads) f(l.box, l.of_rows);
  for (Kernel::Filling& x : m.fillings) f(x.box, x.of_rows);
}

void erase_axis(Axes& a, Memory& m, int k) {
  a.extents.erase(k);
  if (k < a.outer) --a.outer;
  each_strides(m, [&](Shape& strides, bool) { strides.erase(k); });
  each_box(m, [&](Box& b, bool) {
    b.begin.erase(k);
    b.end.erase(k);
  });
}

/// Axes of extent 1 move nothing, unless a box is empty there.
void drop_single_axes(Axes& a, Memory& m) {
  for (int k = a.extents.rank() - 1; k >= 0; --k) {
    bool single = a.extents[k] == 1;
    each_box(m, [&](const Box& b, bool) { single = single && b.end[k] == 1; });
    if (single) erase_axis(a, m, k);
  }
  if (a.extents.rank()) return;
  a.extents = {1};
  for (Kernel::Load& l : m.loads) l.strides = {0};
  for (Kernel::Store& s : m.stores) s.strides = {1};
  each_box(m, [&](Box& b, bool) { b = {{0}, {1}}; });
}

bool can_merge(const Axes& a, Memory& m, int k) {
  if (a.reduces() && k + 1 == a.outer) return false;
  const std::int64_t inner = a.extents[k + 1];
  bool can = true;
  each_strides(m, [&](const Shape& strides, bool) { can = can && strides[k] == strides[k + 1] * inner; });
  each_box(m, [&](const Box& b, bool) { can = can && b.begin[k + 1] == 0 && b.end[k + 1] == inner; });
  return can;
}

/// The outer axes of what has one element for each row, and a last one of its own.
void keep_outer(Shape& s, int outer, std::int64_t last) {
  while (s.rank() > outer) s.erase(outer);
  s.push_back(last);
}

}  // namespace

MergedAxes merge_axes(Axes a, Memory m) {
  drop_single_axes(a, m);
  for (int k = a.extents.rank() - 2; k >= 0; --k) {
    if (!can_merge(a, m, k)) continue;
    const std::int64_t inner = a.extents[k + 1];
    each_strides(m, [&](Shape& strides, bool) { strides[k] = strides[k + 1]; });
    each_box(m, [&](Box& b, bool) {
      b.begin[k] *= inner;
      b.end[k] *= inner;
    });
    a.extents[k] *= inner;
    erase_axis(a, m, k + 1);
  }
  if (a.reduced) {
    a.row_extents = a.extents;
    keep_outer(a.row_extents, a.outer, 1);
    each_strides(m, [&](Shape& strides, bool of_rows) {
      if (of_rows) keep_outer(strides, a.outer, 0);
    });
    each_box(m, [&](Box& b, bool of_rows) {
      if (!of_rows) return;
      bool empty = false;  // a box that is empty stays so, on whatever axis it is
      for (int k = 0; k < b.begin.rank(); ++k) empty |= b.begin[k] >= b.end[k];
      keep_outer(b.begin, a.outer, 0);
      keep_outer(b.end, a.outer, empty ? 0 : 1);
    });
  }
  return {std::move(a), std::move(m)};
}

}  // namespace ferrite::detail
