/// Padding with what a tensor holds, and channels and pixels in another order: composed of views and copies.
#include "ferrite/tensor/ops/define.h"
#include "ferrite/tensor/windows.h"

namespace ferrite {
namespace detail {
namespace {

struct PaddingModeAttrs {
  Shape before{}, after{};
  int mode = 0;
  static constexpr auto fields =
      attr_list(attr("before", &PaddingModeAttrs::before), attr("after", &PaddingModeAttrs::after),
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
};

/// Of `pixel_shuffle`, `pixel_unshuffle` and `channel_shuffle`.
struct ShuffleAttrs {
  std::int64_t factor = 1;
  static constexpr auto fields = attr_list(attr("factor", &ShuffleAttrs::factor));
};

/// x [..., a, b, c] as [lead, a, b, c], and a shape of x's leading axes with other last ones.
Tensor as_planes(const Tensor& x) { return reshape(x, {-1, x.shape()[-3], x.shape()[-2], x.shape()[-1]}); }
Shape like(const Shape& s, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Shape out = s;
  out[-3] = channels;
  out[-2] = height;
  out[-1] = width;
  return out;
}

struct PixelShuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "pixel_shuffle", onnx = "DepthToSpace";
  static constexpr auto summary = "channels [..., C r^2, H, W] as blocks of pixels [..., C, H r, W r]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t r = a.factor, C = s[-3] / (r * r), H = s[-2], W = s[-1];
    const Shape out = like(s, C, H * r, W * r);
    if (in[0].numel() == 0) return reshape(in[0], out);
    const Tensor split = reshape(as_planes(in[0]), {-1, C, r, r, H, W});
    return reshape(permute(split, {0, 1, 4, 2, 5, 3}), out);
  }
};

struct PixelUnshuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "pixel_unshuffle", onnx = "SpaceToDepth";
  static constexpr auto summary = "blocks of pixels [..., C, H r, W r] as channels [..., C r^2, H, W]";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    const std::int64_t r = a.factor, C = s[-3], H = s[-2] / r, W = s[-1] / r;
    const Shape out = like(s, C * r * r, H, W);
    if (in[0].numel() == 0) return reshape(in[0], out);
    const Tensor split = reshape(as_planes(in[0]), {-1, C, H, r, W, r});
    return reshape(permute(split, {0, 1, 3, 5, 2, 4}), out);
  }
};

struct ChannelShuffle {
  using Attributes = ShuffleAttrs;
  static constexpr auto name = "channel_shuffle", onnx = "";
  static constexpr auto summary = "channels of groups one after the other: g K + k becomes k groups + g";

  static Tensor parts(Inputs in, const Attributes& a) {
    const Shape& s = in[0].shape();
    if (in[0].numel() == 0) return in[0];
    return reshape(transpose(reshape(in[0], {s[0], a.factor, s[1] / a.factor, -1}), 1, 2), s);
  }
};

void check_planes(std::string_view where, const Tensor& x) {
  if (x.rank() < 3) throw_shape(where, "expects at least rank 3, got " + x.shape().str());
}

}  // namespace

Family composite_window_family() {
  static constexpr const Primitive* list[] = {&composite<PadMode>, &composite<PixelShuffle>, &composite<PixelUnshuffle>,
                                              &composite<ChannelShuffle>};
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

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  detail::check_planes("pixel_shuffle", x);
  const std::int64_t C = x.shape()[-3];
  if (factor < 1 || factor > C || C % factor != 0 || C / factor % factor != 0)
    throw ValueError("pixel_shuffle: the square of the factor must divide the channels, got " + std::to_string(factor) +
                     " for " + x.shape().str());
  return detail::composed<detail::PixelShuffle>({{&x}}, {factor});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  detail::check_planes("pixel_unshuffle", x);
  if (factor < 1 || x.shape()[-2] % factor != 0 || x.shape()[-1] % factor != 0)
    throw ValueError("pixel_unshuffle: the factor must divide height and width, got " + std::to_string(factor) +
                     " for " + x.shape().str());
  return detail::composed<detail::PixelUnshuffle>({{&x}}, {factor});
}

Tensor channel_shuffle(const Tensor& x, std::int64_t groups) {
  detail::check_planes("channel_shuffle", x);
  if (groups < 1 || x.shape()[1] % groups != 0)
    throw ValueError("channel_shuffle: groups must divide the channels, got " + std::to_string(groups) + " for " +
                     x.shape().str());
  return detail::composed<detail::ChannelShuffle>({{&x}}, {groups});
}

}  // namespace ferrite
