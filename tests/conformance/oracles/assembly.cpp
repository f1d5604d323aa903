// Oracles and samples of tensor/ops/assembly.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"

namespace oracles::assembly {
namespace {

struct Concat {
  using Attributes = AxisAttrs;
  static constexpr auto name = "concat";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    std::int64_t begin = 0;
    for (const Dense& x : in) {
      for_each_index(x.shape, [&](const Shape& i) {
        Shape to = i;
        to[axis] += begin;
        out[0].at(to) = x.at(i);
      });
      begin += x.shape[axis];
    }
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}, {{4, 3}}}, .attrs = AxisAttrs{0}},
            {.inputs = {{{2, 1}}, {{2, 3}}, {{2, 2}}}, .attrs = AxisAttrs{1}},
            {.inputs = {{{0, 2}}, {{3, 2}}}, .attrs = AxisAttrs{0}}};
  }
};

struct Stack {
  using Attributes = AxisAttrs;
  static constexpr auto name = "stack";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    const int axis = attrs.axis;
    for (std::size_t k = 0; k < in.size(); ++k)
      for_each_index(in[k].shape, [&](const Shape& i) {
        Shape to = i;
        to.insert(axis, static_cast<std::int64_t>(k));
        out[0].at(to) = in[k].at(i);
      });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3}}, {{2, 3}}}, .attrs = AxisAttrs{0}},
            {.inputs = {{{2, 3}}, {{2, 3}}, {{2, 3}}}, .attrs = AxisAttrs{2}},
            {.inputs = {{{}}, {{}}}, .attrs = AxisAttrs{0}}};
  }
};

/// Padding, of which negative amounts crop.
struct Pad {
  using Attributes = PadAttrs;
  static constexpr auto name = "pad";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& attrs) {
    for (double& y : out[0].values) y = attrs.value.real();
    for_each_index(in[0].shape, [&](const Shape& i) {
      Shape to = i;
      bool inside = true;
      for (int k = 0; k < i.rank(); ++k) {
        to[k] += attrs.before[k];
        inside &= to[k] >= 0 && to[k] < out[0].shape[k];
      }
      if (inside) out[0].at(to) = in[0].at(i);
    });
  }
  static std::vector<Sample> samples() {
    const auto around = [](Shape before, Shape after, Scalar value) { return PadAttrs{before, after, value}; };
    return {{.inputs = {{{2, 3}}}, .attrs = around({1, 0}, {0, 2}, 0)},
            {.inputs = {{{2, 3}}}, .attrs = around({-1, 1}, {2, -2}, 1.5)},
            {.inputs = {{{4}}}, .attrs = around({-1}, {-1}, 0)},
            {.inputs = {{{0, 2}}}, .attrs = around({1, 1}, {1, 1}, -2.0)},
            {.inputs = {{{3}, Dtype::i64}}, .attrs = around({1}, {1}, 7), .indices = {4, 5, 6}}};
  }
};

const Added added = add<Pad, Concat, Stack>();

}  // namespace
}  // namespace oracles::assembly
