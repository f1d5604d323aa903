/// Lowers convolutions and pooling to ONNX's nodes where their windows agree, else to compositions.
#include "ferrite/exchange/compositions/compositions.h"
#include "ferrite/exchange/onnx_export/export_lowering.h"
#include "ferrite/tensor/window_attributes.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::ConvolutionAttrs;
using ferrite::detail::PoolAttrs;

Integers list(const Shape& s) { return {s.begin(), s.end()}; }

/// Returns the padding before x on each axis, then the padding after it.
Integers padding(const Shape& x, const Shape& kernel, const Shape& stride, const Shape& dilation, const Shape& before,
                 const Shape& size) {
  Integers pads = list(before);
  for (int i = 0; i < size.rank(); ++i)
    pads.push_back(space_behind(x[i + 2], kernel[i], stride[i], dilation[i], before[i], size[i]));
  return pads;
}

/// Returns whether ONNX allows a padding and there are exactly `size` windows with it.
bool gives(const Shape& x, const Shape& kernel, const Shape& stride, const Shape& dilation, const Integers& pads,
           const Shape& size) {
  for (int i = 0; i < size.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t after = pads[at + static_cast<std::size_t>(size.rank())];
    const std::int64_t rest = x[i + 2] + pads[at] + after - (kernel[i] - 1) * dilation[i] - 1;
    if (pads[at] < 0 || rest < 0 || rest / stride[i] + 1 != size[i]) return false;
  }
  return true;
}

Shape kernel_of(const Shape& weights) {
  Shape kernel;
  for (int i = 2; i < weights.rank(); ++i) kernel.push_back(weights[i]);
  return kernel;
}

Values convolution(OnnxBuilder& b, const Application& c) {
  const auto a = c.as<ConvolutionAttrs>();
  const Shape kernel = kernel_of(c.in[1].shape());
  const Integers pads = padding(c.in[0].shape(), kernel, a.stride, a.dilation, a.before, a.size);
  if (!gives(c.in[0].shape(), kernel, a.stride, a.dilation, pads, a.size)) return {};
  if (c.in[0].shape().numel() == 0 || c.in[1].shape().numel() == 0) return {};
  return {b.node("Conv", c.in, c.out[0],
                 {{"dilations", list(a.dilation)},
                  {"group", a.groups},
                  {"kernel_shape", list(kernel)},
                  {"pads", pads},
                  {"strides", list(a.stride)}})};
}

/// Lowers a transposed convolution. Places that no window reaches are output padding, which ONNX limits to less than a
/// stride or a dilation.
Values convolution_transposed(OnnxBuilder& b, const Application& c) {
  const auto a = c.as<ConvolutionAttrs>();
  const Shape &y = c.in[0].shape(), &out = c.out[0].shape, kernel = kernel_of(c.in[1].shape());
  if (y.numel() == 0 || c.in[1].shape().numel() == 0) return {};
  Integers pads = list(a.before), more;
  for (int i = 0; i < kernel.rank(); ++i) {
    const std::int64_t reach = (y[i + 2] - 1) * a.stride[i] + (kernel[i] - 1) * a.dilation[i] + 1;
    const std::int64_t after = reach - a.before[i] - out[i + 2];
    pads.push_back(std::max<std::int64_t>(after, 0));
    more.push_back(std::max<std::int64_t>(-after, 0));
    if (a.before[i] < 0 || more.back() >= std::max(a.stride[i], a.dilation[i])) return {};
  }
  return {b.node("ConvTranspose", c.in, c.out[0],
                 {{"dilations", list(a.dilation)},
                  {"group", a.groups},
                  {"kernel_shape", list(kernel)},
                  {"output_padding", more},
                  {"pads", pads},
                  {"strides", list(a.stride)}})};
}

/// Returns the attributes of a pooling node, or none where ONNX's windows differ.
Attributes pooling(const Application& c) {
  const auto a = c.as<PoolAttrs>();
  const Shape& x = c.in[0].shape();
  if (a.adaptive || c.out[0].dtype != Dtype::f32 || x.numel() == 0) return {};
  const Integers pads = padding(x, a.kernel, a.stride, a.dilation, a.before, a.size);
  if (!gives(x, a.kernel, a.stride, a.dilation, pads, a.size)) return {};
  for (int i = 0; i < a.size.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::max(pads[at], pads[at + static_cast<std::size_t>(a.size.rank())]) >= a.kernel[i]) return {};
  }
  return {{"kernel_shape", list(a.kernel)}, {"pads", pads}, {"strides", list(a.stride)}};
}

Values max_pool(OnnxBuilder& b, const Application& c) {
  Attributes attributes = pooling(c);
  if (attributes.empty()) return {};
  attributes.push_back({"dilations", list(c.as<PoolAttrs>().dilation)});
  return {b.node("MaxPool", {c.in[0]}, c.out[0], std::move(attributes))};
}

/// Lowers the indices of max pooling. ONNX counts places through all planes, Ferrite within one.
Values max_pool_indices(OnnxBuilder& b, const Application& c) {
  const auto a = c.as<PoolAttrs>();
  const Shape& x = c.in[0].shape();
  const Integers pads = padding(x, a.kernel, a.stride, a.dilation, a.before, a.size);
  if (a.adaptive || !gives(x, a.kernel, a.stride, a.dilation, pads, a.size)) return {};
  const Value all = b.nodes("MaxPool", {c.in[0]}, {{c.out[0].shape, c.in[0].dtype()}, c.out[0]},
                            {{"dilations", list(a.dilation)},
                             {"kernel_shape", list(a.kernel)},
                             {"pads", pads},
                             {"strides", list(a.stride)}})[1];
  std::int64_t plane = 1;
  for (int i = 2; i < x.rank(); ++i) plane *= x[i];
  return {b.node("Mod", {all, b.scalar(plane, Dtype::i64)}, c.out[0])};
}

/// Lowers the sum of a window to its mean, with the zeros around x, times the number of its elements.
Values pool_sum(OnnxBuilder& b, const Application& c) {
  const auto a = c.as<PoolAttrs>();
  for (const std::int64_t d : a.dilation)
    if (d != 1) return {};
  Attributes attributes = pooling(c);
  if (attributes.empty()) return {};
  attributes.push_back({"count_include_pad", std::int64_t{1}});
  const Value mean = b.node("AveragePool", {c.in[0]}, c.out[0], std::move(attributes));
  return {b.multiply(mean, b.like(a.kernel.numel(), mean))};
}

}  // namespace

ExportFamily export_windows() {
  static constexpr NamedLowering<OnnxBuilder> list[] = {{"convolution", convolution},
                                                        {"convolution_transposed", convolution_transposed},
                                                        {"max_pool", max_pool},
                                                        {"max_pool_indices", max_pool_indices},
                                                        {"pool_sum", pool_sum}};
  return list;
}

}  // namespace ferrite::exchange::detail
