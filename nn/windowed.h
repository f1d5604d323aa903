#pragma once
/// Layers whose outputs are functions of windows of their inputs.
#include <optional>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// The inputs of which each output step of a layer is made (Windowed::window): output u of the inputs u stride - before
/// + k dilation, k in 0..taps - 1; where there is none, of `padding`.
struct StepWindow {
  std::int64_t taps = 1;      ///< so many inputs
  std::int64_t dilation = 1;  ///< steps from one to the next
  std::int64_t stride = 1;    ///< steps from one window to the next
  std::int64_t before = 0;    ///< steps of padding before the first input
  std::int64_t after = 0;     ///< steps of padding behind the last one
  double padding = 0;         ///< each of its values
  bool operator==(const StepWindow&) const = default;

  /// From the first tap to the last one.
  std::int64_t reach() const { return (taps - 1) * dilation; }
  /// When the outputs come.
  Pace pace() const { return {stride, reach() - before, after}; }
};

/// A layer each of whose output steps is a function of a few input steps, with strides, too. A stream holds these
/// inputs and runs the program of `over` where an output is due.
class Windowed : public Layer {
 public:
  /// Which inputs an output sees; none where the windows are not over the steps of sequences.
  virtual std::optional<StepWindow> window() const = 0;
  /// An output step: the inputs of a window [B, taps, D] -> [B, N], with the bits of `forward`.
  virtual Tensor over(const Tensor& x) const = 0;
  /// `over`, run as a part of this layer: what a stream traces.
  Tensor output_of(const Tensor& window) const {
    return inside([&] { return over(window); });
  }

  Pace pace() const override;
  /// The inputs that later windows see, of a layer that gives an output with each input.
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

 protected:
  using Layer::Layer;
  bool looks_back(const Tensor& x) const override;
};

}  // namespace ferrite::nn
