#pragma once
/// A function of one step as a layer that can be streamed.
#include <functional>
#include <string>

#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

/// Options of PerStep: the function, the layer's kind, and the features and dtype of the input.
struct PerStepOptions {
  std::string name{};                               ///< kind of the layer: "saturate"
  std::function<Tensor(const Tensor&)> function{};  ///< [B, T, D] -> [B, T, N], treats every step by itself
  std::int64_t features = 0;                        ///< D; 0: any number, which the function keeps
  Dtype dtype = Dtype::f32;                         ///< dtype of the input
};

/// Applies a function that treats every step by itself: x [B, T, D] -> y [B, T, N]; there may be any axes before the
/// last one, and the function keeps them. Because the caller promises that a step's output depends on that step alone,
/// the layer is causal and can be streamed, unlike an `Activation` made of an unknown function. The builder's word
/// `per_step` checks the promise on random sequences. The layer has no parameters; a layer with parameters is a class
/// (docs/writing-layers.md).
///
///   const auto saturate = [](const Tensor& x) { return tanh(3 * x) / 3; };
///   const auto net = dsl::sequence(1).gru(16).linear(1).per_step("saturate", saturate).build(/*seed=*/0);
///
/// Throws ShapeError for another number of features, and if the function changes the axes before the last one.
class PerStep final : public LayerOf<PerStep, PerStepOptions> {
 public:
  /// Throws ValueError for an empty name, a null function and features below 0.
  explicit PerStep(const PerStepOptions& options);

  std::string kind() const override { return options().name; }
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, options().dtype, options().features == 0}; }

  /// Throws ValueError if the function gives other values for a step alone than for the same step within a sequence,
  /// tested on random sequences of `features` [2, 4, D]. NaN equals NaN. Errors that the function throws are passed on.
  void check_promise() const;
};

extern template class LayerOf<PerStep, PerStepOptions>;

}  // namespace ferrite::nn
