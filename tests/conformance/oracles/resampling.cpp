// Oracles and samples of tensor/ops/unfolding.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/window_attributes.h"

namespace oracles::resampling {
namespace {

enum Mode : int { kNearest, kNearestExact, kLinear, kCubic };

std::vector<Sample> resample_samples(bool gradient) {
  std::vector<Sample> list;
  const auto add = [&](const Shape& lead, const Shape& rest, const ResampleAttrs& a) {
    Shape s = lead;
    s.push_back(gradient ? a.to : a.from);
    for (const std::int64_t e : rest) s.push_back(e);
    list.push_back({.inputs = {{s}}, .attrs = a});
  };
  add({2}, {}, {1, 5, 8, kNearest});
  add({2}, {3}, {1, 7, 3, kNearestExact});
  add({2, 1}, {}, {2, 5, 9, kLinear});
  add({}, {4}, {0, 5, 9, kLinear, true});
  add({2}, {3}, {1, 6, 4, kLinear, false, 0.7});
  add({2}, {}, {1, 5, 8, kCubic});
  add({}, {2, 2}, {0, 4, 7, kCubic, true});
  add({0}, {}, {1, 3, 5, kLinear});
  add({1}, {}, {1, 1, 3, kCubic, true});
  return list;
}

struct Resample {
  using Attributes = ResampleAttrs;
  static constexpr auto name = "resample";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      const ResampleTaps t = resample_taps(a, at[a.axis]);
      Shape from = at;
      for (int k = 0; k < t.count; ++k) {
        from[a.axis] = t.at[k];
        out[0].at(at) = k == 0 ? t.weight[k] * in[0].at(from) : out[0].at(at) + t.weight[k] * in[0].at(from);
      }
    });
  }
  static std::vector<Sample> samples() { return resample_samples(false); }
};

struct ResampleGradient {
  using Attributes = ResampleAttrs;
  static constexpr auto name = "resample_gradient";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(in[0].shape, [&](const Shape& at) {
      const ResampleTaps t = resample_taps(a, at[a.axis]);
      Shape to = at;
      for (int k = 0; k < t.count; ++k) {
        to[a.axis] = t.at[k];
        out[0].at(to) += t.weight[k] * in[0].at(at);
      }
    });
  }
  static std::vector<Sample> samples() { return resample_samples(true); }
};

const Added added = add<Resample, ResampleGradient>();

}  // namespace
}  // namespace oracles::resampling
