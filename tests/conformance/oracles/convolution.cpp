// Oracles and samples of tensor/ops/convolution.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/ops/detail/convolution.h"

namespace oracles::convolution {
namespace {

/// Returns the extents of a tensor on its spatial axes.
Shape space(const Shape& s) {
  Shape out;
  for (int i = 2; i < s.rank(); ++i) out.push_back(s[i]);
  return out;
}

Shape joined(std::int64_t a, std::int64_t b, const Shape& rest) {
  Shape s{a, b};
  for (const std::int64_t e : rest) s.push_back(e);
  return s;
}

/// Calls f(channel of the large side, channel of the small side, position of the large side, position of the small
/// side, index of the weight) for all that are multiplied in one image.
template <class F>
void each_meeting(const Shape& large, const Shape& small, const Shape& kernel, const ConvolutionAttrs& a, const F& f) {
  const std::int64_t inner = large[1] / a.groups, outer = small[1] / a.groups;
  for_each_index(small, [&](const Shape& to) {
    for_each_index(joined(1, inner, kernel), [&](const Shape& k) {
      Shape from{to[0], to[1] / outer * inner + k[1]};
      Shape weight{to[1], k[1]};
      for (int i = 2; i < to.rank(); ++i) {
        const std::int64_t at = to[i] * a.stride[i - 2] + k[i] * a.dilation[i - 2] - a.before[i - 2];
        if (at < 0 || at >= large[i]) return;
        from.push_back(at);
        weight.push_back(k[i]);
      }
      f(from, to, weight);
    });
  });
}

void add_bias(std::span<const Dense> in, Dense& out) {
  if (in.size() > 2) for_each_index(out.shape, [&](const Shape& at) { out.at(at) += in[2].at({at[1]}); });
}

struct Convolution {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        in[0].shape, out[0].shape, space(in[1].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(to) += in[0].at(from) * in[1].at(w); });
    add_bias(in, out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}, {{4, 3, 3}}, {{4}}}, .attrs = Attributes{{1}, {1}, {1}, {9}}},
            {.inputs = {{{1, 4, 11}}, {{6, 2, 3}}}, .attrs = Attributes{{2}, {2}, {2}, {6}, 2}},
            {.inputs = {{{2, 2, 5, 6}}, {{3, 2, 3, 2}}, {{3}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {5, 2}}},
            {.inputs = {{{1, 3, 7, 7}}, {{3, 1, 3, 3}}}, .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {7, 7}, 3}},
            {.inputs = {{{1, 2, 4, 3, 5}}, {{2, 2, 2, 1, 3}}, {{2}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {2, 5, 5}}},
            {.inputs = {{{1, 30, 20}}, {{9, 30, 9}}}, .attrs = Attributes{{1}, {-1}, {1}, {10}}, .range = {-1, 1}},
            {.inputs = {{{2, 3, 4}}, {{2, 3, 2}}}, .attrs = Attributes{{3}, {0}, {1}, {2}}},
            {.inputs = {{{0, 2, 4}}, {{3, 2, 2}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}},
            {.inputs = {{{1, 0, 4}}, {{3, 0, 2}}, {{3}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}}};
  }
};

struct ConvolutionTransposed {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution_transposed";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        out[0].shape, in[0].shape, space(in[1].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(from) += in[0].at(to) * in[1].at(w); });
    add_bias(in, out[0]);
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 4, 9}}, {{4, 3, 3}}, {{3}}}, .attrs = Attributes{{1}, {1}, {1}, {9}}},
            {.inputs = {{{1, 6, 6}}, {{6, 2, 3}}, {{4}}}, .attrs = Attributes{{2}, {2}, {2}, {11}, 2}},
            {.inputs = {{{2, 3, 5, 2}}, {{3, 2, 3, 2}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {5, 6}}},
            {.inputs = {{{1, 3, 7, 7}}, {{3, 1, 3, 3}}}, .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {7, 7}, 3}},
            {.inputs = {{{1, 2, 2, 5, 5}}, {{2, 2, 2, 1, 3}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {4, 3, 5}}},
            {.inputs = {{{1, 1, 3}}, {{1, 2, 2}}, {{2}}}, .attrs = Attributes{{4}, {1}, {1}, {13}}},
            {.inputs = {{{1, 2, 0}}, {{2, 1, 2}}}, .attrs = Attributes{{1}, {0}, {1}, {3}}}};
  }
};

struct ConvolutionWeights {
  using Attributes = ConvolutionAttrs;
  static constexpr auto name = "convolution_weights";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    each_meeting(
        in[0].shape, in[1].shape, space(out[0].shape), a,
        [&](const Shape& from, const Shape& to, const Shape& w) { out[0].at(w) += in[0].at(from) * in[1].at(to); });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 9}}, {{2, 4, 9}}}, .attrs = Attributes{{1}, {1}, {1}, {3}}},
            {.inputs = {{{1, 4, 11}}, {{1, 6, 6}}}, .attrs = Attributes{{2}, {2}, {2}, {3}, 2}},
            {.inputs = {{{2, 2, 5, 6}}, {{2, 9, 5, 2}}}, .attrs = Attributes{{1, 2}, {1, 0}, {1, 2}, {3, 2}}},
            {.inputs = {{{2, 3, 4, 20}}, {{2, 3, 4, 20}}},
             .attrs = Attributes{{1, 1}, {1, 1}, {1, 1}, {3, 3}, 3},
             .range = {-1, 1}},
            {.inputs = {{{1, 2, 4, 3, 5}}, {{1, 2, 2, 5, 5}}},
             .attrs = Attributes{{2, 1, 1}, {0, 1, 2}, {1, 1, 2}, {2, 1, 3}}},
            {.inputs = {{{0, 2, 4}}, {{0, 3, 3}}}, .attrs = Attributes{{1}, {0}, {1}, {2}}}};
  }
};

const Added added = add<Convolution, ConvolutionTransposed, ConvolutionWeights>();

}  // namespace
}  // namespace oracles::convolution
