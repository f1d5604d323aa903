#pragma once
/// Convolutions over one, two and three axes, and their transposes, as layers.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/convolution.h"

namespace ferrite::nn {

/// Shapes hold one number for each axis of space, or one for all; an empty one is the default.
struct ConvOptions {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Shape kernel_size{};
  Shape stride{};                ///< 1
  ConvolutionPadding padding{};  ///< 0; or ConvolutionPadding::same, ::valid, ::causal
  Shape dilation{};              ///< 1
  std::int64_t groups = 1;       ///< so many parts of the channels, each convolved by itself
  bool bias = true;
  PaddingMode padding_mode = PaddingMode::zeros;
  bool channels_last = false;  ///< x [B, ..., C], as sequences [B, T, C]: the words of a chain set it
};

/// torch.nn.Conv1d, Conv2d, Conv3d: conv1d, conv2d, conv3d (tensor/convolution.h) with weight [out, in / groups,
/// kernel...] and bias [out], in memory as in files, which start as U(-b, b) with b = 1 / sqrt(in / groups * elements
/// of the kernel). x [B, in, ...], or with channels_last [B, ..., in], f32 or f64; the result likewise. Over the steps
/// of sequences, conv1d with channels_last, and padded with zeros, by no more than (kernel - 1) dilation in front, it
/// streams: `causal` and `valid` give an output with the last step that it sees; others look ahead, and the stream
/// gives their last outputs by `finish`. There it honours `context.lengths`: steps beyond the length of a row are
/// zeros, as its padding; ValueError for lengths elsewhere, and for a reset mask where a kernel reaches over several
/// steps. Throws what the functions throw, and DtypeError for another dtype than that of the weights.
template <int N>
class Conv final : public LayerOf<Conv<N>, ConvOptions, Windowed> {
 public:
  static constexpr std::string_view name = N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
  /// Throws ValueError for sizes below 1, numbers that are not one for each axis, and groups that do not divide both
  /// numbers of channels.
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
  Parameter bias;  ///< empty without one
};
using Conv1d = Conv<1>;
using Conv2d = Conv<2>;
using Conv3d = Conv<3>;

struct ConvTransposeOptions {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  Shape kernel_size{};
  Shape stride{};          ///< 1
  Shape padding{};         ///< 0: elements cut off at both ends
  Shape output_padding{};  ///< 0: elements added at the end
  std::int64_t groups = 1;
  bool bias = true;
  Shape dilation{};            ///< 1
  bool channels_last = false;  ///< x [B, ..., C]
};

/// torch.nn.ConvTranspose1d, 2d, 3d: weight [in, out / groups, kernel...] and bias [out] start as U(-b, b) with
/// b = 1 / sqrt(out / groups * elements of the kernel). Else as Conv.
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
  Parameter bias;  ///< empty without one
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
