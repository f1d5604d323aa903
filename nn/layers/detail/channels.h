#pragma once
/// Shared parts of layers with channels: sizes for each axis, channels after the axes of space, checks, steps of
/// convolutions.
#include <memory>
#include <string>
#include <string_view>

#include "ferrite/nn/step.h"
#include "ferrite/nn/windowed.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/shapes.h"
#include "ferrite/tensor/windows.h"

namespace ferrite::nn::detail {

/// Expands one positive number for all axes to one for each. Throws ValueError for another count, and for one below 1.
template <int N>
Shape for_each_axis(std::string_view where, std::string_view what, const Shape& numbers) {
  if (numbers.rank() != 1 && numbers.rank() != N)
    throw ValueError(std::string(where) + ": " + std::string(what) + " needs one number or " + std::to_string(N) +
                     ", got " + numbers.str());
  Shape all;
  for (int i = 0; i < N; ++i) all.push_back(numbers[numbers.rank() == 1 ? 0 : i]);
  for (const std::int64_t n : all)
    if (n < 1)
      throw ValueError(std::string(where) + ": " + std::string(what) + " must be positive, got " + numbers.str());
  return all;
}

inline std::string_view word_for(PaddingMode mode) {
  switch (mode) {
    case PaddingMode::zeros: return "zeros";
    case PaddingMode::reflect: return "reflect";
    case PaddingMode::replicate: return "replicate";
    case PaddingMode::circular: break;
  }
  return "circular";
}

/// Returns f(x), called with the channels on axis 1. Throws ShapeError unless x has a batch, channels and N axes of
/// space.
template <int N, class F>
Tensor with_channels_first(std::string_view where, const Tensor& x, bool channels_last, F&& f) {
  if (x.rank() != N + 2)
    throw ShapeError(std::string(where) + ": expects " + (channels_last ? "[B, ..., C]" : "[B, C, ...]") + " of rank " +
                     std::to_string(N + 2) + ", got " + x.shape().str());
  if (!channels_last) return f(x);
  return movedim(f(movedim(x, {-1}, {1})), {1}, {-1});
}

/// Throws ShapeError for another number of channels, DtypeError unless x has the dtype of the weights. `given` is x as
/// the caller has it, `first` has the channels on axis 1.
inline void check_channels(std::string_view where, const Tensor& given, const Tensor& first, std::int64_t channels,
                           Dtype dtype) {
  if (first.shape()[1] != channels)
    throw ShapeError(std::string(where) + ": expects " + std::to_string(channels) + " channels, got " +
                     given.shape().str());
  if (first.dtype() != dtype)
    throw DtypeError(std::string(where) + ": the weights are " + std::string(name_of(dtype)) + ", got " +
                     given.spec().str() + "; cast the input");
}

/// The order of the terms of an output's sum: by channels and then taps, or by taps and then channels.
enum class TermOrder : std::uint8_t { channels, taps };

/// Makes the step of a convolution: windows [B, taps, D] -> [B, N] with weight [N, D, taps], packed once, and a bias
/// [N] or none.
std::unique_ptr<Step> window_product_step(const StepWindow& window, const Parameter& weight, const Parameter& bias,
                                          const StepRows& in, TermOrder order);

/// Returns the step of a causal convolution of several groups, whose weight is [N, D / groups, taps].
std::unique_ptr<Step> window_groups_step(const StepWindow& window, const Parameter& weight, const Parameter& bias,
                                         std::int64_t groups, const StepRows& in);

}  // namespace ferrite::nn::detail
