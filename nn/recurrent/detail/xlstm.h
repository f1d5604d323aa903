#pragma once
/// What the layers of an xLSTM share, in operations: products and norms of heads, the convolution and its memory.
#include <string>

#include "ferrite/nn/init.h"
#include "ferrite/nn/recurrent/steps.h"

namespace ferrite::nn::detail {

/// A product of each head: x [..., H I] by weight [H, O, I] -> [..., H O], + bias [H O] unless undefined.
Tensor headwise(const Tensor& x, const Tensor& weight, const Tensor& bias = {});
/// Each of the `heads` parts of x [..., N] normalised by itself (layer_norm), times 1 + weight [N] unless undefined.
Tensor head_norm(const Tensor& x, std::int64_t heads, const Tensor& weight);

/// i64 [B, T]: the last step up to each one before which states start anew; `kNoReset` where there is none. Undefined
/// without resets, which are batch first and count within the lengths.
Tensor last_resets(const SequenceOptions& options);
constexpr std::int64_t kNoReset = -(std::int64_t{1} << 40);

/// A causal convolution of each channel by itself, x [B, T, C] by weight [C, 1, K] + bias [C]. `past` [B, K - 1, C],
/// the inputs before the first step, becomes those up to the last one within the lengths; neither looks back beyond
/// `resets`, the last ones.
Tensor causal_conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const SequenceOptions& options,
                   const Tensor& resets, Tensor& past);
/// A step of it: x [B, C].
Tensor causal_conv_step(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor& past);

/// First values of weights and bias of a convolution with a kernel of k steps, as torch.nn.Conv1d.
Fill conv_fill(std::int64_t k);
/// Normal ones of deviation sqrt(2 / (5 n)) (arXiv 1910.05895).
Fill small_fill(std::int64_t n);
/// Throws ValueError, beginning with the layer's name, for an option below the least allowed.
void check_least(const char* layer, const char* option, std::int64_t value, std::int64_t least = 1);
/// The same for a probability outside [0, 1].
void check_probability(const char* layer, const char* option, double value);

}  // namespace ferrite::nn::detail
