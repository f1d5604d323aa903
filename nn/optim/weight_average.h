#pragma once
/// Averages of weights along training: exponential (EMA) or equal (SWA).
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

struct WeightAverageOptions {
  /// Exponential: average = decay average + (1 - decay) w. Otherwise all weights count alike, as in SWA.
  std::optional<double> decay{};
};

/// Averages of parameters, as torch.optim.swa_utils.AveragedModel: exponential moving averages, or stochastic weight
/// averaging (Izmailov et al. 2018, arXiv 1803.05407). The first update takes the parameters as they are. For
/// validation and for what is saved in the end the averages are exchanged with the parameters:
///
///   nn::WeightAverage average(net.parameters(), {.decay = 0.999});
///   adam.step(gradients); average.update();       // after each step
///   average.swap(); validate(net); average.swap();  // and back
///
/// Averages are states: train::save_checkpoint takes them.
class WeightAverage {
 public:
  /// Throws ValueError for a decay outside [0, 1), no parameters, an empty handle or a parameter that is given twice.
  explicit WeightAverage(std::vector<Parameter> parameters, const WeightAverageOptions& options = {});

  /// Takes the parameters into the averages; a compiled step may hold it. Throws ValueError while they are exchanged,
  /// inside a compiled step, too.
  void update();
  /// Exchanges parameters and averages. Throws ValueError before the first update, TraceError inside a compiled
  /// function.
  void swap();
  bool swapped() const { return swapped_->load(); }
  /// Unset: all weights count alike.
  std::optional<double> decay() const { return decay_; }
  /// Updates so far.
  std::int64_t count() const;

  /// "average.<parameter>", and "averaged": how many updates there were.
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
