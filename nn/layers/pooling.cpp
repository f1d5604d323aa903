/// Pooling layers: the functions, and the order of axes.
#include "ferrite/nn/layers/pooling.h"

#include <limits>

#include "ferrite/nn/detail/layer_calls.h"
#include "ferrite/nn/layers/detail/channels.h"

namespace ferrite::nn {
namespace {

void check_size(std::string_view where, const Shape& size, int axes) {
  if (size.rank() != 1 && size.rank() != axes)
    throw ValueError(std::string(where) + ": size needs one number or " + std::to_string(axes) + ", got " + size.str());
}

std::int64_t number(const Shape& s, std::int64_t none) { return s.rank() == 0 ? none : s[0]; }

/// Returns the windows of pooling over the steps of sequences; none with ceil_mode.
template <int N, class Options>
std::optional<StepWindow> window_of(const Options& o, double padding = 0) {
  if (N != 1 || !o.channels_last || o.ceil_mode) return {};
  StepWindow w{.taps = o.kernel_size[0], .stride = number(o.stride, o.kernel_size[0]), .padding = padding};
  if constexpr (requires { o.padding; }) w.before = w.after = number(o.padding, 0);
  if constexpr (requires { o.dilation; }) w.dilation = number(o.dilation, 1);
  return w;
}
bool sees_no_later(const std::optional<StepWindow>& w) { return w && w->after == 0; }
bool begins_with_an_input(const std::optional<StepWindow>& w) { return w && w->before <= w->reach(); }

// Results of a window x [B, taps, C] by the operations of tensor/pooling.h in the same order; the functions there call
// kernels that allocate memory.

/// Returns the largest tap, the first of equal ones; NaN if one is NaN.
Tensor largest(const Tensor& x) {
  Tensor y = select(x, 1, 0);
  for (std::int64_t k = 1; k < x.shape()[1]; ++k) {
    const Tensor tap = select(x, 1, k);
    y = where(gt(tap, y), tap, where(ne(tap, tap), tap, y));
  }
  return y;
}
Tensor mean_of_taps(const Tensor& x, std::int64_t divisor) {
  Tensor y = select(x, 1, 0) + 0;
  for (std::int64_t k = 1; k < x.shape()[1]; ++k) y = y + select(x, 1, k);
  if (divisor == 0) divisor = x.shape()[1];
  return divisor == 1 ? y : y / static_cast<double>(divisor);
}
Tensor norm_of_taps(const Tensor& x, double norm) {
  const Tensor means = mean_of_taps(pow(x, norm), 0);
  return pow(sign(means) * relu(abs(means)) * static_cast<double>(x.shape()[1]), 1 / norm);
}

}  // namespace

template <int N>
MaxPool<N>::MaxPool(const MaxPoolLayerOptions& o) : LayerOf<MaxPool<N>, MaxPoolLayerOptions, Windowed>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor MaxPool<N>::forward(const Tensor& given, const Context& context) const {
  const MaxPoolLayerOptions& o = this->options();
  const Tensor x =
      detail::within_lengths(*this, window(), given, context, true, -std::numeric_limits<double>::infinity());
  const MaxPoolOptions how{o.stride, o.padding, o.dilation, o.ceil_mode};
  const Tensor y = detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return max_pool1d(first, o.kernel_size, how);
    if constexpr (N == 2) return max_pool2d(first, o.kernel_size, how);
    if constexpr (N == 3) return max_pool3d(first, o.kernel_size, how);
  });
  return detail::with_zeros_behind(*this, y, context);
}
template <int N>
bool MaxPool<N>::causal() const {
  return sees_no_later(window());
}
template <int N>
bool MaxPool<N>::streams() const {
  return begins_with_an_input(window());
}
template <int N>
std::optional<StepWindow> MaxPool<N>::window() const {
  return window_of<N>(this->options(), -std::numeric_limits<double>::infinity());
}
template <int N>
Tensor MaxPool<N>::over(const Tensor& x) const {
  return largest(x);
}

template <int N>
AvgPool<N>::AvgPool(const AvgPoolLayerOptions& o) : LayerOf<AvgPool<N>, AvgPoolLayerOptions, Windowed>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor AvgPool<N>::forward(const Tensor& given, const Context& context) const {
  const AvgPoolLayerOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, window(), given, context, o.count_include_pad, 0);
  const AvgPoolOptions how{o.stride, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return avg_pool1d(first, o.kernel_size, how);
    if constexpr (N == 2) return avg_pool2d(first, o.kernel_size, how);
    if constexpr (N == 3) return avg_pool3d(first, o.kernel_size, how);
  });
}
template <int N>
bool AvgPool<N>::causal() const {
  return sees_no_later(window());
}
template <int N>
bool AvgPool<N>::streams() const {
  const AvgPoolLayerOptions& o = this->options();
  return causal() || ((o.count_include_pad || o.divisor_override != 0) && begins_with_an_input(window()));
}
template <int N>
std::optional<StepWindow> AvgPool<N>::window() const {
  return window_of<N>(this->options());
}
template <int N>
Tensor AvgPool<N>::over(const Tensor& x) const {
  return mean_of_taps(x, this->options().divisor_override);
}

template <int N>
LpPool<N>::LpPool(const LpPoolLayerOptions& o) : LayerOf<LpPool<N>, LpPoolLayerOptions, Windowed>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor LpPool<N>::forward(const Tensor& given, const Context& context) const {
  const LpPoolLayerOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, window(), given, context, true, 0);
  const LpPoolOptions how{o.stride, o.ceil_mode};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return lp_pool1d(first, o.norm, o.kernel_size, how);
    if constexpr (N == 2) return lp_pool2d(first, o.norm, o.kernel_size, how);
    if constexpr (N == 3) return lp_pool3d(first, o.norm, o.kernel_size, how);
  });
}
template <int N>
bool LpPool<N>::causal() const {
  return sees_no_later(window());
}
template <int N>
std::optional<StepWindow> LpPool<N>::window() const {
  return window_of<N>(this->options());
}
template <int N>
Tensor LpPool<N>::over(const Tensor& x) const {
  return norm_of_taps(x, this->options().norm);
}

template <int N>
AdaptiveAvgPool<N>::AdaptiveAvgPool(const AdaptivePoolOptions& o)
    : LayerOf<AdaptiveAvgPool<N>, AdaptivePoolOptions>(o) {
  check_size(name, o.size, N);
}
template <int N>
Tensor AdaptiveAvgPool<N>::forward(const Tensor& given, const Context& context) const {
  const AdaptivePoolOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, {}, given, context, false, 0);
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return adaptive_avg_pool1d(first, o.size);
    if constexpr (N == 2) return adaptive_avg_pool2d(first, o.size);
    if constexpr (N == 3) return adaptive_avg_pool3d(first, o.size);
  });
}

template <int N>
AdaptiveMaxPool<N>::AdaptiveMaxPool(const AdaptivePoolOptions& o)
    : LayerOf<AdaptiveMaxPool<N>, AdaptivePoolOptions>(o) {
  check_size(name, o.size, N);
}
template <int N>
Tensor AdaptiveMaxPool<N>::forward(const Tensor& given, const Context& context) const {
  const AdaptivePoolOptions& o = this->options();
  const Tensor x = detail::within_lengths(*this, {}, given, context, false, 0);
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return adaptive_max_pool1d(first, o.size);
    if constexpr (N == 2) return adaptive_max_pool2d(first, o.size);
    if constexpr (N == 3) return adaptive_max_pool3d(first, o.size);
  });
}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class LpPool<1>;
template class LpPool<2>;
template class LpPool<3>;
template class AdaptiveAvgPool<1>;
template class AdaptiveAvgPool<2>;
template class AdaptiveAvgPool<3>;
template class AdaptiveMaxPool<1>;
template class AdaptiveMaxPool<2>;
template class AdaptiveMaxPool<3>;
template class LayerOf<MaxPool<1>, MaxPoolLayerOptions, Windowed>;
template class LayerOf<MaxPool<2>, MaxPoolLayerOptions, Windowed>;
template class LayerOf<MaxPool<3>, MaxPoolLayerOptions, Windowed>;
template class LayerOf<AvgPool<1>, AvgPoolLayerOptions, Windowed>;
template class LayerOf<AvgPool<2>, AvgPoolLayerOptions, Windowed>;
template class LayerOf<AvgPool<3>, AvgPoolLayerOptions, Windowed>;
template class LayerOf<LpPool<1>, LpPoolLayerOptions, Windowed>;
template class LayerOf<LpPool<2>, LpPoolLayerOptions, Windowed>;
template class LayerOf<LpPool<3>, LpPoolLayerOptions, Windowed>;
template class LayerOf<AdaptiveAvgPool<1>, AdaptivePoolOptions>;
template class LayerOf<AdaptiveAvgPool<2>, AdaptivePoolOptions>;
template class LayerOf<AdaptiveAvgPool<3>, AdaptivePoolOptions>;
template class LayerOf<AdaptiveMaxPool<1>, AdaptivePoolOptions>;
template class LayerOf<AdaptiveMaxPool<2>, AdaptivePoolOptions>;
template class LayerOf<AdaptiveMaxPool<3>, AdaptivePoolOptions>;

}  // namespace ferrite::nn
