#pragma once
/// Steps of convolutions: a window of inputs times the weights.
#include <memory>

#include "ferrite/nn/step.h"
#include "ferrite/nn/windowed.h"

namespace ferrite::nn::detail {

/// By what the terms of an output are ordered: channels and then taps, or taps and then channels.
enum class TermOrder : std::uint8_t { channels, taps };

/// Windows [B, taps, D] -> [B, N] with weight [N, D, taps], packed once, and a bias [N] or none.
std::unique_ptr<Step> window_product_step(const StepWindow& window, const Parameter& weight, const Parameter& bias,
                                          const StepRows& in, TermOrder order);

}  // namespace ferrite::nn::detail
