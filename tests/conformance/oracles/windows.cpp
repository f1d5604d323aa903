// Oracles and samples of tensor/ops/views.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::windows {
namespace {

struct Slice {
  using Attributes = SliceAttrs;
  static constexpr auto name = "slice";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from[axis] = attrs.begin + i[axis] * attrs.step;
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    const auto cut = [](int axis, std::int64_t begin, std::int64_t count, std::int64_t step) {
      return SliceAttrs{axis, begin, count, step};
    };
    return {{.inputs = {{{5, 4}}}, .attrs = cut(0, 1, 3, 1)},
            {.inputs = {{{5, 4}}}, .attrs = cut(1, 0, 2, 2)},
            {.inputs = {{{7}}}, .attrs = cut(0, 6, 4, -2)},
            {.inputs = {{{7, 2}}}, .attrs = cut(0, 6, 7, -1)},
            {.inputs = {{{3, 2}}}, .attrs = cut(0, 2, 0, 1)}};
  }
};

struct Select {
  using Attributes = SelectAttrs;
  static constexpr auto name = "select";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for_each_index(out[0].shape, [&](const Shape& i) {
      Shape from = i;
      from.insert(attrs.axis, attrs.index);
      out[0].at(i) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{5, 4}}}, .attrs = SelectAttrs{0, 3}},
            {.inputs = {{{5, 4}}}, .attrs = SelectAttrs{1, 0}},
            {.inputs = {{{3}}}, .attrs = SelectAttrs{0, 2}}};
  }
};

/// All slices along an axis at once: one operation, whose gradient is one stack.
struct Unbind {
  using Attributes = AxisAttrs;
  static constexpr auto name = "unbind";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (std::size_t k = 0; k < out.size(); ++k)
      for_each_index(out[k].shape, [&](const Shape& i) {
        Shape from = i;
        from.insert(attrs.axis, static_cast<std::int64_t>(k));
        out[k].at(i) = in[0].at(from);
      });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{3, 2}}}, .attrs = AxisAttrs{0}}, {.inputs = {{{2, 3, 4}}}, .attrs = AxisAttrs{1}}};
  }
};

struct SplitAttrs {
  int axis = 0;
  std::int64_t size = 1;
  static constexpr auto fields = attr_list(attr("axis", &SplitAttrs::axis), attr("size", &SplitAttrs::size));
};

/// Pieces of equal size; the last one may be smaller.
struct Split {
  using Attributes = SplitAttrs;
  static constexpr auto name = "split";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    for (std::size_t k = 0; k < out.size(); ++k)
      for_each_index(out[k].shape, [&](const Shape& i) {
        Shape from = i;
        from[axis] += static_cast<std::int64_t>(k) * attrs.size;
        out[k].at(i) = in[0].at(from);
      });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{5, 2}}}, .attrs = SplitAttrs{0, 2}}, {.inputs = {{{2, 9}}}, .attrs = SplitAttrs{1, 3}}};
  }
};

const Added added = add<Slice, Select, Unbind, Split>();

}  // namespace
}  // namespace oracles::windows
