/// Padding with what a tensor holds: composed of views and one copy for each padded axis.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/windows.h"

namespace ferrite {
namespace detail {
namespace {

struct PaddingModeAttrs {
  Shape before{}, after{};
  int mode = 0;
  static constexpr auto fields =
      std::tuple(attr("before", &PaddingModeAttrs::before), attr("after", &PaddingModeAttrs::after),
                 attr("mode", &PaddingModeAttrs::mode));
};

/// What stands before and after an axis of n elements.
Tensor margin(const Tensor& x, int axis, std::int64_t begin, std::int64_t end) { return slice(x, axis, begin, end); }

Tensor padded_axis(const Tensor& x, int axis, std::int64_t before, std::int64_t after, PaddingMode mode) {
  const std::int64_t n = x.shape()[axis];
  const auto repeated = [&](std::int64_t at, std::int64_t count) {
    Shape shape = x.shape();
    shape[axis] = count;
    return expand(margin(x, axis, at, at + 1), shape);
  };
  Tensors parts;
  if (before > 0)
    parts.push_back(mode == PaddingMode::reflect     ? flip(margin(x, axis, 1, before + 1), {axis})
                    : mode == PaddingMode::replicate ? repeated(0, before)
                                                     : margin(x, axis, n - before, n));
  parts.push_back(x);
  if (after > 0)
    parts.push_back(mode == PaddingMode::reflect     ? flip(margin(x, axis, n - 1 - after, n - 1), {axis})
                    : mode == PaddingMode::replicate ? repeated(n - 1, after)
                                                     : margin(x, axis, 0, after));
  return parts.size() == 1 ? x : concat(std::span<const Tensor>(parts.data(), parts.size()), axis);
}

struct PadMode {
  using Attributes = PaddingModeAttrs;
  static constexpr auto name = "pad_mode", onnx = "Pad";
  static constexpr auto summary = "x with its own elements around: mode 1 mirrored, 2 the ends repeated, 3 cyclic";

  static Tensor parts(Inputs in, const Attributes& a) {
    Tensor y = in[0];
    for (int i = 0; i < y.rank(); ++i) y = padded_axis(y, i, a.before[i], a.after[i], static_cast<PaddingMode>(a.mode));
    return y;
  }
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

}  // namespace

Family composite_window_family() {
  static constexpr const Primitive* list[] = {&composite<PadMode>};
  return list;
}

}  // namespace detail

Tensor pad(const Tensor& x, const Shape& before, const Shape& after, PaddingMode mode) {
  if (before.rank() != x.rank() || after.rank() != x.rank())
    detail::throw_shape("pad", "before and after need one amount for each axis: " + before.str() + " and " +
                                   after.str() + " for " + x.shape().str());
  for (int i = 0; i < x.rank(); ++i) {
    const std::int64_t n = x.shape()[i], most = std::max(before[i], after[i]);
    if (before[i] < 0 || after[i] < 0)
      throw ValueError("pad: amounts must not be negative with a mode: " + before.str() + " and " + after.str() +
                       "; crop with slice");
    if (most == 0 || mode == PaddingMode::zeros) continue;
    const bool fits = mode == PaddingMode::reflect ? most < n : mode == PaddingMode::replicate ? n > 0 : most <= n;
    if (!fits)
      detail::throw_shape("pad", "axis " + std::to_string(i) + " of " + x.shape().str() + " has too few elements for " +
                                     std::to_string(most) + " more of this mode");
  }
  if (mode == PaddingMode::zeros) return pad(x, before, after, 0);
  return detail::composed<detail::PadMode>({{&x}}, {before, after, static_cast<int>(mode)});
}

}  // namespace ferrite
