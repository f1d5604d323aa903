#pragma once
/// Causal convolution over time.
#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/windowed.h"

namespace ferrite::nn {

/// Options of CausalConv1d, with PyTorch's names.
struct CausalConv1dOptions {
  std::int64_t in_channels = 0;  ///< the builder infers it
  std::int64_t out_channels = 0;
  std::int64_t kernel_size = 0;  ///< number of taps
  std::int64_t dilation = 1;     ///< steps from one tap to the next
  std::int64_t stride = 1;       ///< steps from one output to the next
  std::int64_t groups = 1;       ///< number of parts of the channels, each convolved by itself
  bool bias = true;
  static constexpr auto fields = attr_list(
      attr("in_channels", &CausalConv1dOptions::in_channels), attr("out_channels", &CausalConv1dOptions::out_channels),
      attr("kernel_size", &CausalConv1dOptions::kernel_size), attr("dilation", &CausalConv1dOptions::dilation),
      attr("stride", &CausalConv1dOptions::stride), attr("groups", &CausalConv1dOptions::groups),
      attr("bias", &CausalConv1dOptions::bias));

  /// Returns how many steps back the first tap reads: (kernel_size - 1) * dilation.
  std::int64_t past() const { return (kernel_size - 1) * dilation; }
};

/// A convolution over time that sees no later step: torch.nn.functional.conv1d of the input padded with (kernel_size -
/// 1) * dilation zeros before its first step.
///
///   y[b, u, o] = bias[o] + sum over k, i of weight[o, i, k] x[b, u stride - (kernel_size - 1 - k) dilation, g I + i]
///
/// with I = in_channels / groups and g = o / (out_channels / groups), the group of o. It is summed as a matrix product
/// (docs/numerics.md, rule 2), by k and then by i, so that a stream has added up nearly all terms before the last input
/// arrives; with several groups of one channel each, element by element in the order of k. x [B, T, in_channels] ->
/// [B, T', out_channels] with T' = T / stride, rounded up; f32 or f64. weight [out_channels, I, kernel_size] and bias
/// [out_channels], in memory as in files, start as U(-b, b) with b = 1 / sqrt(I kernel_size), as in torch.nn.Conv1d.
///
/// Before the first step the input is zeros, or with `context.carry` the last steps of the previous piece; no output
/// looks back beyond a step at which `context.reset_mask` is set. If a carry is used, `context.lengths` say where each
/// row ends. Pieces and streams have the outputs of the whole sequence bit for bit; both carry the last past() steps.
/// With a stride, pieces have a multiple of it as steps and rows of one length, and a stream gives one step for every
/// `stride` inputs.
///
/// Throws ShapeError for another rank, another number of channels, a sequence without steps, and lengths and masks that
/// do not fit, DtypeError unless x has the dtype of the weights, ValueError for pieces that end within a stride.
class CausalConv1d final : public LayerOf<CausalConv1d, CausalConv1dOptions, Windowed> {
 public:
  static constexpr auto name = "causal_conv1d";
  /// Throws ValueError for sizes below 1, for groups that do not divide both numbers of channels, and if the first tap
  /// is 2^31 or more steps back.
  explicit CausalConv1d(const CausalConv1dOptions& options, const Init& init = {});

  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return true; }
  bool reads_lengths() const override { return true; }
  StepInput step_input() const override { return {options().in_channels, weight.dtype()}; }
  std::optional<StepWindow> window() const override;
  Tensor over(const Tensor& x) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter weight;
  Parameter bias;  ///< empty if there is none

 private:
  Tensor convolved(const Tensors& taps) const;
  void carry_on(const Tensor& padded, const Tensor& last_reset, const Context& context) const;
};

extern template class LayerOf<CausalConv1d, CausalConv1dOptions, Windowed>;

}  // namespace ferrite::nn
