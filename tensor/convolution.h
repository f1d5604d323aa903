#pragma once
/// Convolutions over one, two and three axes, and their transposes.
#include "ferrite/tensor/windows.h"

namespace ferrite {

/// The padding around the axes of a convolution: numbers, one for all axes or one for each, or a rule. `same` adds what
/// preserves the extents, (kernel - 1) dilation, the smaller half in front; it requires strides of 1. `causal` adds the
/// same amount, all of it in front, so that no output depends on a later input. `valid` adds none.
class ConvolutionPadding {
 public:
  enum Rule : std::uint8_t { numbers, same, valid, causal };
  constexpr ConvolutionPadding() = default;
  constexpr ConvolutionPadding(Rule r) : rule(r) {}
  constexpr ConvolutionPadding(const Shape& s) : amounts(s) {}
  constexpr ConvolutionPadding(std::initializer_list<std::int64_t> list) : amounts(list) {}

  Rule rule = numbers;
  Shape amounts{};  ///< for `numbers`: elements at each end of an axis; empty: 0
};

/// Options of `conv1d`, 2d and 3d: where the kernel is placed, and what lies beyond the ends. Shapes hold one number
/// for each spatial axis, or one for all; an empty shape is the default.
struct ConvolutionOptions {
  Shape stride{};                ///< default 1 on every axis
  ConvolutionPadding padding{};  ///< default 0 on every axis
  Shape dilation{};              ///< default 1 on every axis
  std::int64_t groups = 1;       ///< number of parts of the channels that are convolved separately
  PaddingMode padding_mode = PaddingMode::zeros;
};

/// Options of `conv_transpose1d`, 2d and 3d. Shapes hold one number for each spatial axis, or one for all; an empty
/// shape is the default.
struct TransposedOptions {
  Shape stride{};          ///< default 1 on every axis
  Shape padding{};         ///< default 0: elements cut off the result at both ends
  Shape output_padding{};  ///< default 0: elements added to the result's end; below the stride or the dilation
  std::int64_t groups = 1;
  Shape dilation{};  ///< default 1 on every axis
};

/// Returns the cross-correlation of x with the weight, as torch.nn.functional.conv1d: with I = C / groups and g = o /
/// (O / groups), the group of o,
///
///   y[n, o, t] = bias[o] + sum over i, k of weight[o, i, k] x[n, g I + i, t stride + k dilation - padding]
///
/// x [N, C, T] or [C, T], weight [O, I, K], bias [O] or none -> y [N, O, T'] or [O, T'], all of one dtype, f32 or f64;
/// T' = (T + 2 padding - dilation (K - 1) - 1) / stride + 1, rounded down. Elements beyond the ends of x follow the
/// padding mode. Summed with (i, k) ascending, in blocks of 256 (docs/numerics.md, rule 2); an element's bits do not
/// depend on N or threads. Throws ShapeError for ranks, channels, weights and bias that do not fit and where x with its
/// padding is shorter than the kernel, DtypeError for other dtypes, ValueError for strides and dilations below 1,
/// negative padding, groups that do not divide C and O, and `same` with a stride.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvolutionOptions& options = {});
/// Returns the cross-correlation over two axes, as torch.nn.functional.conv2d: x [N, C, H, W] or [C, H, W], weight [O,
/// I, KH, KW] -> [N, O, H', W'] or [O, H', W']. Formula, bias, options and errors are those of conv1d.
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvolutionOptions& options = {});
/// Returns the cross-correlation over three axes, as torch.nn.functional.conv3d: x [N, C, D, H, W] or [C, D, H, W],
/// weight [O, I, KD, KH, KW] -> [N, O, D', H', W'] or [O, D', H', W']. The rest is as for conv1d.
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const ConvolutionOptions& options = {});

/// Returns the transposed convolution, the adjoint of conv1d, as torch.nn.functional.conv_transpose1d: x[n, c, t]
/// weight[c, o, k] is added to y[n, g O + o, t stride + k dilation - padding], g = c / (C / groups), where that is an
/// element of y.
///
/// x [N, C, T] or [C, T], weight [C, O, K], bias [groups O] or none -> y [N, groups O, T'] or [groups O, T'];
/// T' = (T - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1. Every element is one chain over (c, k)
/// ascending, in blocks of 256. Throws as conv1d does, ValueError for an output padding that is neither less than the
/// stride nor less than the dilation, and ShapeError where nothing would be left.
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const TransposedOptions& options = {});
/// Returns the transposed convolution over two axes: x [N, C, H, W] or [C, H, W], weight [C, O, KH, KW] -> [N, groups
/// O, H', W'] or [groups O, H', W']. The rest is as for conv_transpose1d.
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const TransposedOptions& options = {});
/// Returns the transposed convolution over three axes: x [N, C, D, H, W] or [C, D, H, W], weight [C, O, KD, KH, KW] ->
/// [N, groups O, D', H', W'] or [groups O, D', H', W']. The rest is as for conv_transpose1d.
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                        const TransposedOptions& options = {});

}  // namespace ferrite
