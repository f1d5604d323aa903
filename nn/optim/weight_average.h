#pragma once
/// Averages of weights during training: exponential (EMA) or equal (SWA).
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// Options of WeightAverage: how much each update counts in the averages.
struct WeightAverageOptions {
  /// Decay of exponential averages: average = decay average + (1 - decay) w. By default all weights count equally, as
  /// in SWA.
  std::optional<double> decay{};
};

/// Averages of parameters, as torch.optim.swa_utils.AveragedModel: exponential moving averages, or stochastic weight
/// averaging (Izmailov et al. 2018, arXiv 1803.05407). The first update copies the parameters. Exchange averages and
/// parameters for validation and for the final weights:
///
///   nn::WeightAverage average(net.parameters(), {.decay = 0.999});
///   adam.step(gradients); average.update();       // after each step
///   average.swap(); validate(net); average.swap();  // and back
///
/// The averages are states, which train::save_checkpoint can save.
class WeightAverage {
 public:
  /// Throws ValueError for a decay outside [0, 1), no parameters, an empty handle or a parameter that is given twice.
  explicit WeightAverage(std::vector<Parameter> parameters, const WeightAverageOptions& options = {});

  /// Updates the averages with the current parameters; may run inside a compiled step. Throws ValueError while averages
  /// and parameters are exchanged, inside a compiled step, too.
  void update();
  /// Exchanges parameters and averages. Throws ValueError before the first update, TraceError inside a compiled
  /// function.
  void swap();
  /// Returns whether the parameters currently hold the averages, and the averages the parameters.
  bool swapped() const { return swapped_->load(); }
  /// Returns the decay; unset if all weights count equally.
  std::optional<double> decay() const { return decay_; }
  /// Returns the number of updates so far.
  std::int64_t count() const;

  /// Returns the states: "average.<parameter>", and "averaged", the number of updates.
  const std::vector<Named<State>>& states() const& { return states_; }
  std::vector<Named<State>> states() const&& { return states_; }

 private:
  std::vector<Parameter> parameters_;
  std::optional<double> decay_;
  std::vector<State> averages_;
  State count_;
  std::vector<Named<State>> states_;
  std::shared_ptr<std::atomic<bool>> swapped_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace ferrite::nn
