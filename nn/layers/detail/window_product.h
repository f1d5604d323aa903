#pragma once
/// Steps of convolutions: a window of inputs times the weights.
#include <memory>

#include "ferrite/nn/step.h"
#include "ferrite/nn/windowed.h"

namespace ferrite::nn::detail {

/// The order of the terms of an output: by channels and then taps, or by taps and then channels.
enum class TermOrder : std::uint8_t { channels, taps };

/// Makes the step of a convolution: windows [B, taps, D] -> [B, N] with weight [N, D, taps], packed once, and a bias
/// [N] or none.
std::unique_ptr<Step> window_product_step(const StepWindow& window, const Parameter& weight, const Parameter& bias,
                                          const StepRows& in, TermOrder order);

}  // namespace ferrite::nn::detail
