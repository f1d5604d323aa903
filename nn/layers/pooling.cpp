/// Pooling as layers: the functions, and the order of axes.
#include "ferrite/nn/layers/pooling.h"

#include "ferrite/nn/layers/detail/channels.h"

namespace ferrite::nn {
namespace {

void check_size(std::string_view where, const Shape& size, int axes) {
  if (size.rank() != 1 && size.rank() != axes)
    throw ValueError(std::string(where) + ": size needs one number or " + std::to_string(axes) + ", got " + size.str());
}

}  // namespace

template <int N>
MaxPool<N>::MaxPool(const MaxPoolLayerOptions& o) : LayerOf<MaxPool<N>, MaxPoolLayerOptions>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor MaxPool<N>::forward(const Tensor& x, const Context&) const {
  const MaxPoolLayerOptions& o = this->options();
  const MaxPoolOptions how{o.stride, o.padding, o.dilation, o.ceil_mode};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return max_pool1d(first, o.kernel_size, how);
    if constexpr (N == 2) return max_pool2d(first, o.kernel_size, how);
    if constexpr (N == 3) return max_pool3d(first, o.kernel_size, how);
  });
}

template <int N>
AvgPool<N>::AvgPool(const AvgPoolLayerOptions& o) : LayerOf<AvgPool<N>, AvgPoolLayerOptions>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor AvgPool<N>::forward(const Tensor& x, const Context&) const {
  const AvgPoolLayerOptions& o = this->options();
  const AvgPoolOptions how{o.stride, o.padding, o.ceil_mode, o.count_include_pad, o.divisor_override};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return avg_pool1d(first, o.kernel_size, how);
    if constexpr (N == 2) return avg_pool2d(first, o.kernel_size, how);
    if constexpr (N == 3) return avg_pool3d(first, o.kernel_size, how);
  });
}

template <int N>
LpPool<N>::LpPool(const LpPoolLayerOptions& o) : LayerOf<LpPool<N>, LpPoolLayerOptions>(o) {
  detail::for_each_axis<N>(name, "kernel_size", o.kernel_size);
}
template <int N>
Tensor LpPool<N>::forward(const Tensor& x, const Context&) const {
  const LpPoolLayerOptions& o = this->options();
  const LpPoolOptions how{o.stride, o.ceil_mode};
  return detail::with_channels_first<N>(name, x, o.channels_last, [&](const Tensor& first) {
    if constexpr (N == 1) return lp_pool1d(first, o.norm, o.kernel_size, how);
    if constexpr (N == 2) return lp_pool2d(first, o.norm, o.kernel_size, how);
    if constexpr (N == 3) return lp_pool3d(first, o.norm, o.kernel_size, how);
  });
}

template <int N>
AdaptiveAvgPool<N>::AdaptiveAvgPool(const AdaptivePoolOptions& o)
    : LayerOf<AdaptiveAvgPool<N>, AdaptivePoolOptions>(o) {
  check_size(name, o.size, N);
}
template <int N>
Tensor AdaptiveAvgPool<N>::forward(const Tensor& x, const Context&) const {
  const AdaptivePoolOptions& o = this->options();
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
Tensor AdaptiveMaxPool<N>::forward(const Tensor& x, const Context&) const {
  const AdaptivePoolOptions& o = this->options();
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

}  // namespace ferrite::nn
