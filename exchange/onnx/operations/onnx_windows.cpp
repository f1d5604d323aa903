/// Lowers convolutions and normalisations.
#include <algorithm>
#include <array>
#include <limits>

#include "ferrite/exchange/onnx/onnx_operations.h"
#include "ferrite/exchange/onnx/operations/arguments.h"
#include "ferrite/tensor/convolution.h"
#include "ferrite/tensor/math.h"
#include "ferrite/tensor/normalization.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::onnx::detail {
namespace {

/// The attributes of windows, one number for each spatial axis.
struct Window {
  std::vector<std::int64_t> kernel, stride, dilation, before, after;
  std::string auto_pad;
  int space = 0;

  Window(const Call& c, const Tensor& x, const std::vector<std::int64_t>& extents) : kernel(extents) {
    space = x.rank() - 2;
    if (space < 1 || space > 3) c.refuse("its input must have one to three axes of space, got " + x.shape().str());
    const auto list = [&](std::string_view name, std::int64_t otherwise) {
      std::vector<std::int64_t> all = c.integers(name);
      if (all.empty()) all.assign(static_cast<std::size_t>(space), otherwise);
      if (all.size() != static_cast<std::size_t>(space))
        c.refuse(std::string(name) + " must hold " + std::to_string(space) + " numbers");
      return sizes_of(c, name, all, 1);
    };
    if (kernel.size() != static_cast<std::size_t>(space))
      c.refuse("the kernel must have " + std::to_string(space) + " extents");
    stride = list("strides", 1);
    dilation = list("dilations", 1);
    auto_pad = c.text("auto_pad", "NOTSET");
    std::vector<std::int64_t> pads = pads_of(c, c.integers("pads"));
    if (pads.empty()) pads.assign(2 * kernel.size(), 0);
    if (pads.size() != 2 * kernel.size()) c.refuse("pads must hold " + std::to_string(2 * space) + " numbers");
    before.assign(pads.begin(), pads.begin() + space);
    after.assign(pads.begin() + space, pads.end());
    if (auto_pad == "VALID") before.assign(kernel.size(), 0), after = before;
    if (auto_pad != "NOTSET" && auto_pad != "VALID" && auto_pad != "SAME_UPPER" && auto_pad != "SAME_LOWER")
      c.refuse("there is no auto_pad '" + auto_pad + "'");
  }

  bool same() const { return auto_pad.starts_with("SAME"); }
  std::int64_t reach(std::size_t i) const { return (kernel[i] - 1) * dilation[i] + 1; }
  /// Divides a padding between the front, which gets the larger half if `lower`, and the end.
  void share(std::size_t i, std::int64_t total, bool lower) {
    const std::int64_t there = std::max<std::int64_t>(total, 0);
    before[i] = lower ? there - there / 2 : there / 2;
    after[i] = total - before[i];
  }
  /// Sets the padding with which the result has the extents of x, divided by the strides and rounded up.
  void pad_same(const Tensor& x) {
    if (!same()) return;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const std::int64_t n = x.shape()[static_cast<int>(i) + 2], out = (n + stride[i] - 1) / stride[i];
      share(i, std::max<std::int64_t>((out - 1) * stride[i] + reach(i) - n, 0), auto_pad == "SAME_LOWER");
    }
  }
  bool symmetric() const { return before == after; }
  /// Returns x with the padding along its spatial axes.
  Tensor padded(const Tensor& x, Scalar value) const {
    Shape front = Shape::filled(x.rank(), 0), back = front;
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      front[static_cast<int>(i) + 2] = before[i];
      back[static_cast<int>(i) + 2] = after[i];
    }
    return pad(x, front, back, value);
  }
};

std::vector<std::int64_t> kernel_of(const Tensor& weight) {
  std::vector<std::int64_t> all;
  for (int i = 2; i < weight.rank(); ++i) all.push_back(weight.shape()[i]);
  return all;
}

void check_kernel(const Call& c, const Tensor& weight) {
  const std::vector<std::int64_t> given = c.integers("kernel_shape");
  if (!given.empty() && given != kernel_of(weight))
    c.refuse("kernel_shape is not that of the weights " + weight.shape().str());
}

Values conv(const Call& c) {
  const Tensor bias = c.has(2) ? c.tensor(2) : Tensor();
  return {narrowed(convolution_of(c, c.tensor(0), c.tensor(1), bias), c.type(0))};
}

Values conv_transpose(const Call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  check_kernel(c, w);
  Window window(c, x, kernel_of(w));
  std::vector<std::int64_t> more = sizes_of(c, "output_padding", c.integers("output_padding"), 0),
                            wanted = sizes_of(c, "output_shape", c.integers("output_shape"), 0);
  if (more.empty()) more.assign(window.kernel.size(), 0);
  if (more.size() != window.kernel.size())
    c.refuse("output_padding must hold " + std::to_string(window.space) + " numbers");
  if (wanted.size() == window.kernel.size() + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (!wanted.empty() && wanted.size() != window.kernel.size())
    c.refuse("output_shape must hold " + std::to_string(window.space) + " numbers");
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t n = x.shape()[static_cast<int>(i) + 2];
    const std::int64_t whole = (n - 1) * window.stride[i] + window.reach(i) + more[i];
    if (!wanted.empty()) {
      window.share(i, whole - wanted[i], window.auto_pad != "SAME_UPPER");
    } else if (window.same()) {
      window.share(i, whole - n * window.stride[i], window.auto_pad != "SAME_UPPER");
    }
  }
  const TransposedOptions o{.stride = shape_of(window.stride),
                            .output_padding = shape_of(more),
                            .groups = c.integer("group", 1),
                            .dilation = shape_of(window.dilation)};
  Tensor y = window.space == 1   ? conv_transpose1d(x, w, {}, o)
             : window.space == 2 ? conv_transpose2d(x, w, {}, o)
                                 : conv_transpose3d(x, w, {}, o);
  for (std::vector<std::int64_t>* list : {&window.before, &window.after})
    for (std::int64_t& n : *list) n = -n;  // cut off
  y = window.padded(y, 0);
  if (c.has(2)) {
    Shape channels = Shape::filled(y.rank(), 1);
    channels[1] = -1;
    y = y + reshape(c.tensor(2), channels);
  }
  return {narrowed(y, c.type(0))};
}

// ---- normalisation ---------------------------------------------------------------------------------------

Tensor by_channel(const Tensor& t, const Tensor& x) {
  Shape s = Shape::filled(x.rank(), 1);
  s[1] = -1;
  return reshape(t, s);
}

Values layer_normalization(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t given = c.integer("axis", -1);
  const auto first = static_cast<int>(given < 0 ? given + x.rank() : given);
  if (first < 0 || first >= x.rank())
    c.refuse("axis " + std::to_string(given) + " of a tensor of rank " + std::to_string(x.rank()));
  c.without_effect("stash_type");  // the input's type is used
  const double epsilon = c.number("epsilon", 1e-5);
  Tensor y = layer_norm(x, x.rank() - first, epsilon) * c.tensor(1);
  if (c.has(2)) y = y + c.tensor(2);
  Values out = {narrowed(y, c.type(0))};
  if (c.wants(1) || c.wants(2)) {
    Shape axes;
    for (int i = first; i < x.rank(); ++i) axes.push_back(i);
    const Tensor m = mean(x, axes, true);
    out.push_back({m, c.type(0)});
    out.push_back({rsqrt(mean(square(x - m), axes, true) + epsilon), c.type(0)});
  }
  return out;
}

Values rms_normalization(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t given = c.integer("axis", -1);
  const auto first = static_cast<int>(given < 0 ? given + x.rank() : given);
  if (first < 0 || first >= x.rank())
    c.refuse("axis " + std::to_string(given) + " of a tensor of rank " + std::to_string(x.rank()));
  c.without_effect("stash_type");
  Shape axes;
  for (int i = first; i < x.rank(); ++i) axes.push_back(i);
  const Tensor y = x * rsqrt(mean(square(x), axes, true) + c.number("epsilon", 1e-5));
  return {narrowed(y * c.tensor(1), c.type(0))};
}

/// Normalises over each channel, or group of channels, and all spatial axes.
Tensor normalized_groups(const Tensor& x, std::int64_t groups, double epsilon) {
  std::int64_t each = x.shape()[1] / std::max<std::int64_t>(groups, 1);  // also for a batch without rows
  for (int i = 2; i < x.rank(); ++i) each *= x.shape()[i];
  const Tensor rows = reshape(x, {x.shape()[0], groups, each});
  const Tensor centred = rows - mean(rows, {2}, true);
  return reshape(centred * rsqrt(mean(square(centred), {2}, true) + epsilon), x.shape());
}

Values instance_normalization(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor y = normalized_groups(x, x.shape()[1], c.number("epsilon", 1e-5));
  return {narrowed(y * by_channel(c.tensor(1), x) + by_channel(c.tensor(2), x), c.type(0))};
}

/// Lowers GroupNormalization, whose scale and bias belong to groups before opset 21.
Values group_normalization(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::int64_t groups = c.integer("num_groups");
  c.without_effect("stash_type");
  if (x.rank() < 2 || groups < 1 || x.shape()[1] % groups != 0)
    c.refuse(std::to_string(groups) + " groups do not divide the channels of " + x.shape().str());
  const auto channels = [&](const Tensor& t) {
    if (t.numel() == x.shape()[1]) return by_channel(t, x);
    return by_channel(reshape(expand(reshape(t, {groups, 1}), {groups, x.shape()[1] / groups}), {-1}), x);
  };
  const Tensor y = normalized_groups(x, groups, c.number("epsilon", 1e-5));
  return {narrowed(y * channels(c.tensor(1)) + channels(c.tensor(2)), c.type(0))};
}

constexpr std::array kRows = std::to_array<Operation>({
    {.name = "Conv", .lower = conv},
    {.name = "ConvTranspose", .lower = conv_transpose},
    {.name = "LayerNormalization", .lower = layer_normalization},
    {.name = "RMSNormalization", .lower = rms_normalization},
    {.name = "InstanceNormalization", .lower = instance_normalization},
    {.name = "GroupNormalization", .lower = group_normalization},
});

}  // namespace

Tensor convolution_of(const Call& c, const Tensor& given, const Tensor& w, const Tensor& bias) {
  Tensor x = given;
  check_kernel(c, w);
  Window window(c, x, kernel_of(w));
  window.pad_same(x);
  ConvolutionOptions o{
      .stride = shape_of(window.stride), .dilation = shape_of(window.dilation), .groups = c.integer("group", 1)};
  if (window.symmetric()) {
    o.padding = ConvolutionPadding(shape_of(window.before));
  } else {
    x = window.padded(x, 0);
  }
  return window.space == 1 ? conv1d(x, w, bias, o) : window.space == 2 ? conv2d(x, w, bias, o) : conv3d(x, w, bias, o);
}

Operations window_operations() { return kRows; }

}  // namespace ferrite::onnx::detail
