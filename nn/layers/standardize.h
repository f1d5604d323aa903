#pragma once
/// Inputs brought to mean 0 and deviation 1 by numbers of the training data, which are saved with the net.
#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

struct StandardizeOptions {
  std::int64_t features = 0;
  bool skip_missing = false;  ///< NaN stands for a missing number: `adapt` leaves it out, and 0, the mean, replaces it
  static constexpr auto fields = attr_list(attr("features", &StandardizeOptions::features),
                                           attr("skip_missing", &StandardizeOptions::skip_missing));
};

/// y = (x - mean) / deviation of every feature: x [..., D] -> [..., D]. Mean and deviation are buffers, 0 and 1 at
/// first; `adapt` takes them from data, train::adapt from a data set. As keras.layers.Normalization; with
/// `skip_missing` a missing number, NaN, becomes 0 and passes no gradient on, as scikit-learn's StandardScaler followed
/// by SimpleImputer would have it.
///
///   const auto net = dsl::sequence(3).standardize().gru(16).last_step().linear(1).build(0);
///   train::adapt(net, training);
class Standardize final : public LayerOf<Standardize, StandardizeOptions> {
 public:
  static constexpr auto name = "standardize";
  /// Throws ValueError for fewer than 1 feature.
  explicit Standardize(const StandardizeOptions& options, const Init& init = {});
  explicit Standardize(std::int64_t features, const Init& init = {})
      : Standardize(StandardizeOptions{features}, init) {}

  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, mean.dtype()}; }

  /// Takes mean and deviation, divided by N, over all axes of x [..., D] but the last; with `skip_missing` over the
  /// numbers that are not NaN. A feature that is constant keeps the deviation 1. Throws ShapeError for other features,
  /// ValueError for no rows, for a feature all of whose numbers are missing, and where a number comes out that is not
  /// finite; nothing has changed then.
  void adapt(const Tensor& x) const;
  /// mean + deviation y: predictions of standardised targets in the unit of the data.
  Tensor inverse(const Tensor& y) const;

  Buffer mean;       ///< [D]
  Buffer deviation;  ///< [D]
};

extern template class LayerOf<Standardize, StandardizeOptions>;

}  // namespace ferrite::nn
