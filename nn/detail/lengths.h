#pragma once
/// Checks of the lengths of a batch's sequences, as part of the program.
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/attrs.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::nn::detail {

/// The lengths i64 [B], checked as part of the program to lie in least..T each (tensor/ops.h: checked). Throws
/// ShapeError in the words of `who`, "gru: a length of".
Tensor checked_lengths(Label who, const Tensor& lengths, std::int64_t B, std::int64_t T, std::int64_t least = 1);

/// x [B, T, C] as a layer with windows of these steps sees it: `outside` in place of the steps beyond the lengths,
/// where windows reach over the ends of rows. Throws ValueError for lengths and reset masks that it cannot honour:
/// windows that are none or that do not know where the padding begins (`padding` is false), and resets within windows.
Tensor within_lengths(const Layer& layer, const std::optional<StepWindow>& window, const Tensor& x,
                      const Context& context, bool padding, double outside);

/// y [B, T', C], what such a layer made of x, with 0 in place of the steps beyond `lengths_after`: where what it puts
/// `outside` is not finite, windows of nothing else would pass it on.
Tensor with_zeros_behind(const Windowed& layer, const Tensor& y, const Context& context);

}  // namespace ferrite::nn::detail
