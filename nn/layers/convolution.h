#pragma once
/// Convolutions and transposed convolutions over one, two and three axes as layers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/convolution.h"

namespace ferrite::nn {

/// Options of Conv. Shapes hold one number for each axis of space, or one for all; an empty one is the default.
struct ConvOptions {
  std::int64_t in_channels = 0;  ///< the builder infers it
  std::int64_t out_channels = 0;
  Shape kernel_size{};
  Shape stride{};                ///< distance of the windows of neighbouring outputs, by default 1
  ConvolutionPadding padding{};  ///< by default 0; or ConvolutionPadding::same, ::valid, ::causal
  Shape dilation{};              ///< distance of neighbouring taps, by default 1
  std::int64_t groups = 1;       ///< number of parts of the channels, each convolved by itself
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;  ///< what the padding holds
  bool channels_last = false;                     ///< x is [B, ..., C], as in sequences [B, T, C]; the builder sets it
};

/// A convolution, as torch.nn.Conv1d, Conv2d or Conv3d: conv1d, conv2d, conv3d (tensor/convolution.h) with weight
/// [out, in / groups, kernel...] and bias [out], in memory as in files, which start as U(-b, b) with b = 1 / sqrt(in /
/// groups * elements of the kernel). x [B, in, ...], or with channels_last [B, ..., in], f32 or f64; the result has the
/// same layout and dtype. conv1d with channels_last, padded in front with at most (kernel - 1) dilation zeros, streams
/// over the steps of sequences: with `causal` and `valid` padding an output comes with the last step that it sees;
/// others look ahead, and the stream gives their last outputs in `finish`. It then honours `context.lengths`: steps
/// beyond the length of a row count as zeros, like padding. Elsewhere lengths throw ValueError, and so does a reset
/// mask if a kernel covers several steps. Throws what the functions throw, and DtypeError unless x has the dtype of the
/// weights.
template <int N>
class Conv final : public LayerOf<Conv<N>, ConvOptions, Windowed> {
 public:
  static constexpr std::string_view name = N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
  /// Throws ValueError for sizes below 1, numbers that are not one for each axis or one for all, and groups that do not
  /// divide both numbers of channels.
  explicit Conv(const ConvOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }
  bool causal() const override;
  bool streams() const override;
  StepInput step_input() const override { return {this->options().in_channels, weight.dtype()}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter weight;
  Parameter bias;  ///< empty if there is none
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

/// Options of ConvTranspose. Shapes hold one number for each axis of space, or one for all; an empty one is the
/// default.
struct ConvTransposeOptions {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Shape kernel_size{};
  Shape stride{};           ///< input steps lie this far apart in the result, by default 1
  Shape padding{};          ///< elements of the result cut off at both ends of each axis, by default 0
  Shape output_padding{};   ///< elements added at the end of each axis of the result, by default 0
  std::int64_t groups = 1;  ///< number of parts of the channels, each convolved by itself
  bool bias = true;
  Shape dilation{};            ///< by default 1 along each axis
  bool channels_last = false;  ///< x is [B, ..., C] instead of [B, C, ...]
};

/// A transposed convolution, as torch.nn.ConvTranspose1d, 2d or 3d: weight [in, out / groups, kernel...] and bias [out]
/// start as U(-b, b) with b = 1 / sqrt(out / groups * elements of the kernel). Otherwise as Conv.
template <int N>
class ConvTranspose final : public LayerOf<ConvTranspose<N>, ConvTransposeOptions> {
 public:
  static constexpr std::string_view name = N == 1   ? "conv_transpose1d"
                                           : N == 2 ? "conv_transpose2d"
                                                    : "conv_transpose3d";
  explicit ConvTranspose(const ConvTransposeOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context&) const override;
  bool reads_lengths() const override { return true; }

  Parameter weight;
  Parameter bias;  ///< empty if there is none
};
using ConvTranspose1d = ConvTranspose<1>;
using ConvTranspose2d = ConvTranspose<2>;
using ConvTranspose3d = ConvTranspose<3>;

extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;
extern template class ConvTranspose<1>;
extern template class ConvTranspose<2>;
extern template class ConvTranspose<3>;

extern template class LayerOf<Conv<1>, ConvOptions, Windowed>;
extern template class LayerOf<Conv<2>, ConvOptions, Windowed>;
extern template class LayerOf<Conv<3>, ConvOptions, Windowed>;
extern template class LayerOf<ConvTranspose<1>, ConvTransposeOptions>;
extern template class LayerOf<ConvTranspose<2>, ConvTransposeOptions>;
extern template class LayerOf<ConvTranspose<3>, ConvTransposeOptions>;

}  // namespace ferrite::nn
