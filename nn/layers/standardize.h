#pragma once
/// Scales inputs to mean 0 and deviation 1 by statistics of the training data, which are saved with the network.
#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

/// Options of Standardize: number of features, and whether NaN means a missing number.
struct StandardizeOptions {
  std::int64_t features = 0;  ///< D, extent of the last axis
  bool skip_missing = false;  ///< NaN means a missing number: `adapt` ignores it, and 0, the mean, replaces it
  static constexpr auto fields = attr_list(attr("features", &StandardizeOptions::features),
                                           attr("skip_missing", &StandardizeOptions::skip_missing));
};

/// Standardises every feature, y = (x - mean) / deviation: x [..., D] -> [..., D]. Mean and deviation are buffers,
/// initially 0 and 1; `adapt` computes them from a tensor, train::adapt from a data set. As keras.layers.Normalization.
/// With `skip_missing` a missing number, NaN, becomes 0 and passes no gradient on, as in scikit-learn's StandardScaler
/// followed by SimpleImputer.
///
///   const auto net = dsl::sequence(3).standardize().gru(16).last_step().linear(1).build(0);
///   train::adapt(net, training);
class Standardize final : public LayerOf<Standardize, StandardizeOptions> {
 public:
  static constexpr auto name = "standardize";
  /// Throws ValueError unless there is at least one feature.
  explicit Standardize(const StandardizeOptions& options, const Init& init = {});
  explicit Standardize(std::int64_t features, const Init& init = {})
      : Standardize(StandardizeOptions{features}, init) {}

  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, mean.dtype()}; }

  /// Sets mean and deviation (divided by N) from all axes of x [..., D] except the last; with `skip_missing` from the
  /// numbers that are not NaN. The deviation is 1 for a feature that is constant, or whose deviation rounds to 0.
  /// Throws ShapeError for another number of features; ValueError for no rows, a feature whose numbers are all missing,
  /// and statistics that are not finite. An adapt that throws changes nothing.
  void adapt(const Tensor& x) const;
  /// Returns mean + deviation y: predictions of standardised targets in the unit of the data.
  Tensor inverse(const Tensor& y) const;

  Buffer mean;       ///< mean of each feature, [D]
  Buffer deviation;  ///< standard deviation of each feature, [D]
};

extern template class LayerOf<Standardize, StandardizeOptions>;

}  // namespace ferrite::nn
