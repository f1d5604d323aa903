// Oracles and samples of tensor/ops/unfolding.cpp.
#include <vector>

#include "conformance/oracles/oracle.h"
#include "ferrite/tensor/windows.h"

namespace oracles::composite_windows {
namespace {

struct PaddingModeAttrs {
  Shape before{}, after{};
  int mode = 0;
  static constexpr auto fields =
      attr_list(attr("before", &PaddingModeAttrs::before), attr("after", &PaddingModeAttrs::after),
                attr("mode", &PaddingModeAttrs::mode));
};

struct PadMode {
  using Attributes = PaddingModeAttrs;
  static constexpr auto name = "pad_mode";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      Shape from = at;
      for (int i = 0; i < at.rank(); ++i) {
        const std::int64_t n = in[0].shape[i];
        std::int64_t k = at[i] - a.before[i];
        if (a.mode == 1 && k < 0) k = -k;
        if (a.mode == 1 && k >= n) k = 2 * (n - 1) - k;
        if (a.mode == 2) k = k < 0 ? 0 : k >= n ? n - 1 : k;
        if (a.mode == 3) k = (k + n) % n;
        from[i] = k;
      }
      out[0].at(at) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 3, 4}}}, .attrs = PaddingModeAttrs{{0, 2, 1}, {0, 1, 3}, 1}},
            {.inputs = {{{2, 3, 4}}}, .attrs = PaddingModeAttrs{{0, 2, 5}, {1, 1, 0}, 2}},
            {.inputs = {{{2, 3, 4}}}, .attrs = PaddingModeAttrs{{0, 3, 1}, {1, 1, 4}, 3}},
            {.inputs = {{{}}}, .attrs = PaddingModeAttrs{{}, {}, 1}},
            {.inputs = {{{0, 3}}}, .attrs = PaddingModeAttrs{{0, 1}, {0, 1}, 2}}};
  }
};

/// The constants of `pixel_shuffle`, `pixel_unshuffle` and `channel_shuffle`.
struct ShuffleAttrs {
  std::int64_t factor = 1;
  static constexpr auto fields = attr_list(attr("factor", &ShuffleAttrs::factor));
};

struct PixelShuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "pixel_shuffle";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      const std::int64_t r = a.factor;
      Shape from = at;
      from[-3] = (at[-3] * r + at[-2] % r) * r + at[-1] % r;
      from[-2] = at[-2] / r;
      from[-1] = at[-1] / r;
      out[0].at(at) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 8, 2, 3}}}, .attrs = Attributes{2}},
            {.inputs = {{{9, 1, 2}}}, .attrs = Attributes{3}},
            {.inputs = {{{0, 4, 2, 2}}}, .attrs = Attributes{2}}};
  }
};

struct PixelUnshuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "pixel_unshuffle";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      const std::int64_t r = a.factor;
      Shape from = at;
      from[-3] = at[-3] / (r * r);
      from[-2] = at[-2] * r + at[-3] / r % r;
      from[-1] = at[-1] * r + at[-3] % r;
      out[0].at(at) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 2, 4, 6}}}, .attrs = Attributes{2}},
            {.inputs = {{{1, 3, 6}}}, .attrs = Attributes{3}},
            {.inputs = {{{0, 1, 2, 2}}}, .attrs = Attributes{2}}};
  }
};

struct ChannelShuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "channel_shuffle";
  static void oracle(std::span<const Dense> in, std::span<Dense> out, const Attributes& a) {
    for_each_index(out[0].shape, [&](const Shape& at) {
      Shape from = at;
      from[1] = at[1] % a.factor * (in[0].shape[1] / a.factor) + at[1] / a.factor;
      out[0].at(at) = in[0].at(from);
    });
  }
  static std::vector<Sample> samples() {
    return {{.inputs = {{{2, 6, 3}}}, .attrs = Attributes{2}},
            {.inputs = {{{1, 6, 2, 2}}}, .attrs = Attributes{3}},
            {.inputs = {{{0, 4, 2}}}, .attrs = Attributes{2}}};
  }
};

const Added added = add<PadMode, PixelShuffle, PixelUnshuffle, ChannelShuffle>();

}  // namespace
}  // namespace oracles::composite_windows
