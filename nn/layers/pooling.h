#pragma once
/// Pooling over one, two and three axes as layers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/pooling.h"

namespace ferrite::nn {

// Shapes hold one number for each axis of space, or one for all; an empty one is the default. All layers take x
// [B, C, ...], or with channels_last [B, ..., C], and return it with other extents on the axes of space. Semantics and
// errors are those of the functions in tensor/pooling.h, which are PyTorch's. max_pool1d, avg_pool1d and lp_pool1d with
// channels_last and without ceil_mode stream over the steps of sequences, avg_pool1d if it counts its padding: an
// output comes with the last step of its window, the last ones of padded windows in `finish`. They honour
// `context.lengths`: steps beyond the length of a row count as padding. Elsewhere lengths throw ValueError, and so does
// a reset mask.

/// Options of MaxPool, with PyTorch's names. Shapes hold one number for each axis of space, or one for all.
struct MaxPoolLayerOptions {
  Shape kernel_size{};
  Shape stride{};    ///< by default the kernel's extents
  Shape padding{};   ///< by default 0 along each axis
  Shape dilation{};  ///< by default 1 along each axis
  bool ceil_mode = false;
  bool channels_last = false;
  static constexpr auto fields = attr_list(
      attr("kernel_size", &MaxPoolLayerOptions::kernel_size), attr("stride", &MaxPoolLayerOptions::stride),
      attr("padding", &MaxPoolLayerOptions::padding), attr("dilation", &MaxPoolLayerOptions::dilation),
      attr("ceil_mode", &MaxPoolLayerOptions::ceil_mode), attr("channels_last", &MaxPoolLayerOptions::channels_last));
};
/// A layer that gives the largest element of every window, as torch.nn.MaxPool1d, 2d, 3d.
template <int N>
class MaxPool final : public LayerOf<MaxPool<N>, MaxPoolLayerOptions, Windowed> {
 public:
  static constexpr std::string_view name = N == 1 ? "max_pool1d" : N == 2 ? "max_pool2d" : "max_pool3d";
  /// Throws ValueError for a kernel without one number for each axis or one for all, and for numbers below 1.
  explicit MaxPool(const MaxPoolLayerOptions& options);
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
  bool causal() const override;
  bool streams() const override;
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
};

/// Options of AvgPool, with PyTorch's names. Shapes hold one number for each axis of space, or one for all.
struct AvgPoolLayerOptions {
  Shape kernel_size{};
  Shape stride{};   ///< by default the kernel's extents
  Shape padding{};  ///< by default 0 along each axis
  bool ceil_mode = false;
  bool count_include_pad = true;      ///< whether the padding counts as elements of a window
  std::int64_t divisor_override = 0;  ///< divisor of the sums; 0: the number of elements of the window
  bool channels_last = false;
  static constexpr auto fields =
      attr_list(attr("kernel_size", &AvgPoolLayerOptions::kernel_size), attr("stride", &AvgPoolLayerOptions::stride),
                attr("padding", &AvgPoolLayerOptions::padding), attr("ceil_mode", &AvgPoolLayerOptions::ceil_mode),
                attr("count_include_pad", &AvgPoolLayerOptions::count_include_pad),
                attr("divisor_override", &AvgPoolLayerOptions::divisor_override),
                attr("channels_last", &AvgPoolLayerOptions::channels_last));
};
/// A layer that gives the mean of every window, as torch.nn.AvgPool1d, 2d, 3d.
template <int N>
class AvgPool final : public LayerOf<AvgPool<N>, AvgPoolLayerOptions, Windowed> {
 public:
  static constexpr std::string_view name = N == 1 ? "avg_pool1d" : N == 2 ? "avg_pool2d" : "avg_pool3d";
  explicit AvgPool(const AvgPoolLayerOptions& options);
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
  bool causal() const override;
  bool streams() const override;
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
};

/// Options of LpPool, with PyTorch's names except `norm`. Shapes hold one number for each axis of space, or one for
/// all.
struct LpPoolLayerOptions {
  double norm = 2;  ///< exponent of the formula: PyTorch's norm_type
  Shape kernel_size{};
  Shape stride{};  ///< by default the kernel's extents
  bool ceil_mode = false;
  bool channels_last = false;
  static constexpr auto fields =
      attr_list(attr("norm", &LpPoolLayerOptions::norm), attr("kernel_size", &LpPoolLayerOptions::kernel_size),
                attr("stride", &LpPoolLayerOptions::stride), attr("ceil_mode", &LpPoolLayerOptions::ceil_mode),
                attr("channels_last", &LpPoolLayerOptions::channels_last));
};
/// A layer that gives (sum of x^norm)^(1 / norm) of every window, as torch.nn.LPPool1d, 2d, 3d.
template <int N>
class LpPool final : public LayerOf<LpPool<N>, LpPoolLayerOptions, Windowed> {
 public:
  static constexpr std::string_view name = N == 1 ? "lp_pool1d" : N == 2 ? "lp_pool2d" : "lp_pool3d";
  explicit LpPool(const LpPoolLayerOptions& options);
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
  bool causal() const override;
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
};

/// Options of AdaptiveAvgPool and AdaptiveMaxPool: extents of the result, and the position of the channels.
struct AdaptivePoolOptions {
  Shape size{};                ///< extents of the result along the axes of space; -1 keeps that of x
  bool channels_last = false;  ///< x is [B, ..., C] instead of [B, C, ...]
  static constexpr auto fields =
      attr_list(attr("size", &AdaptivePoolOptions::size), attr("channels_last", &AdaptivePoolOptions::channels_last));
};
/// A layer that gives the means of as many windows as `size` says, as torch.nn.AdaptiveAvgPool1d, 2d, 3d.
template <int N>
class AdaptiveAvgPool final : public LayerOf<AdaptiveAvgPool<N>, AdaptivePoolOptions> {
 public:
  static constexpr std::string_view name = N == 1   ? "adaptive_avg_pool1d"
                                           : N == 2 ? "adaptive_avg_pool2d"
                                                    : "adaptive_avg_pool3d";
  /// Throws ValueError for a size without one number for each axis or one for all.
  explicit AdaptiveAvgPool(const AdaptivePoolOptions& options);
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
};
/// A layer that gives the largest elements of as many windows as `size` says, as torch.nn.AdaptiveMaxPool1d, 2d, 3d.
template <int N>
class AdaptiveMaxPool final : public LayerOf<AdaptiveMaxPool<N>, AdaptivePoolOptions> {
 public:
  static constexpr std::string_view name = N == 1   ? "adaptive_max_pool1d"
                                           : N == 2 ? "adaptive_max_pool2d"
                                                    : "adaptive_max_pool3d";
  explicit AdaptiveMaxPool(const AdaptivePoolOptions& options);
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
};

using MaxPool1d = MaxPool<1>;
using MaxPool2d = MaxPool<2>;
using MaxPool3d = MaxPool<3>;
using AvgPool1d = AvgPool<1>;
using AvgPool2d = AvgPool<2>;
using AvgPool3d = AvgPool<3>;
using LpPool1d = LpPool<1>;
using LpPool2d = LpPool<2>;
using LpPool3d = LpPool<3>;
using AdaptiveAvgPool1d = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2d = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3d = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1d = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2d = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3d = AdaptiveMaxPool<3>;

extern template class LayerOf<MaxPool<1>, MaxPoolLayerOptions, Windowed>;
extern template class LayerOf<MaxPool<2>, MaxPoolLayerOptions, Windowed>;
extern template class LayerOf<MaxPool<3>, MaxPoolLayerOptions, Windowed>;
extern template class LayerOf<AvgPool<1>, AvgPoolLayerOptions, Windowed>;
extern template class LayerOf<AvgPool<2>, AvgPoolLayerOptions, Windowed>;
extern template class LayerOf<AvgPool<3>, AvgPoolLayerOptions, Windowed>;
extern template class LayerOf<LpPool<1>, LpPoolLayerOptions, Windowed>;
extern template class LayerOf<LpPool<2>, LpPoolLayerOptions, Windowed>;
extern template class LayerOf<LpPool<3>, LpPoolLayerOptions, Windowed>;
extern template class LayerOf<AdaptiveAvgPool<1>, AdaptivePoolOptions>;
extern template class LayerOf<AdaptiveAvgPool<2>, AdaptivePoolOptions>;
extern template class LayerOf<AdaptiveAvgPool<3>, AdaptivePoolOptions>;
extern template class LayerOf<AdaptiveMaxPool<1>, AdaptivePoolOptions>;
extern template class LayerOf<AdaptiveMaxPool<2>, AdaptivePoolOptions>;
extern template class LayerOf<AdaptiveMaxPool<3>, AdaptivePoolOptions>;

}  // namespace ferrite::nn
