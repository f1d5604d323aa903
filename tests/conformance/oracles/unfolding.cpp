// Oracles and samples of tensor/ops/unfolding.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/windows.h"
#include "ferrite/tensor/windows.h"

namespace oracles::unfolding {
namespace {

/// Calls f(index of a column, index of an element) for all elements that are not padding.
template <class F>
void each_entry(const Shape& columns, const UnfoldAttrs& a, const F& f) {
  const std::int64_t taps = a.kernel.numel();
  const int axes = a.space.rank();
  for_each_index(columns, [&](const Shape& at) {
    Shape from{at[0], at[1] / taps};
    std::int64_t tap = at[1] % taps, window = at[2];
    Shape place = Shape::filled(axes, 0);
    for (int i = axes - 1; i >= 0; --i) {
      place[i] = window % a.size[i] * a.stride[i] + tap % a.kernel[i] * a.dilation[i] - a.before[i];
      window /= a.size[i];
      tap /= a.kernel[i];
      if (place[i] < 0 || place[i] >= a.space[i]) return;
    }
    for (const std::int64_t p : place) from.push_back(p);
    f(at, from);
  });
}

struct UnfoldWindows {
  using Attributes = UnfoldAttrs;
  static constexpr auto name = "unfold_windows";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_entry(out[0].shape, a, [&](const Shape& at, const Shape& from) { out[0].at(at) = in[0].at(from); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 2, 9}}}, .attrs = Attributes{{3}, {2}, {1}, {2}, {4}, {9}}},
            {.inputs = {{{1, 2, 4, 5}}}, .attrs = Attributes{{2, 3}, {1, 2}, {1, 0}, {2, 1}, {4, 2}, {4, 5}}},
            {.inputs = {{{1, 1, 3, 3, 4}}},
             .attrs = Attributes{{2, 1, 2}, {1, 1, 2}, {0, 0, 1}, {1, 1, 1}, {2, 3, 3}, {3, 3, 4}}},
            {.inputs = {{{0, 2, 4}}}, .attrs = Attributes{{2}, {1}, {0}, {1}, {3}, {4}}}};
  }
};

struct FoldWindows {
  using Attributes = UnfoldAttrs;
  static constexpr auto name = "fold_windows";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_entry(in[0].shape, a, [&](const Shape& at, const Shape& from) { out[0].at(from) += in[0].at(at); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 6, 4}}}, .attrs = Attributes{{3}, {2}, {1}, {2}, {4}, {9}}},
            {.inputs = {{{1, 12, 8}}}, .attrs = Attributes{{2, 3}, {1, 2}, {1, 0}, {2, 1}, {4, 2}, {4, 5}}},
            {.inputs = {{{0, 2, 3}}}, .attrs = Attributes{{2}, {1}, {0}, {1}, {3}, {4}}}};
  }
};

struct UnfoldAxis {
  using Attributes = UnfoldAxisAttrs;
  static constexpr auto name = "unfold_axis";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      Shape from = at;
      from.erase(at.rank() - 1);
      from[a.axis] = at[a.axis] * a.step + at[-1];
      out[0].at(at) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{7}}}, .attrs = Attributes{0, 3, 2}},
            {.inputs = {{{2, 5, 3}}}, .attrs = Attributes{1, 2, 1}},
            {.inputs = {{{4, 3}}}, .attrs = Attributes{0, 4, 3}},
            {.inputs = {{{4, 0}}}, .attrs = Attributes{0, 2, 1}}};
  }
};

const Added added = add<UnfoldWindows, FoldWindows, UnfoldAxis>();

}  // namespace
}  // namespace oracles::unfolding
