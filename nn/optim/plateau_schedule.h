#pragma once
/// A schedule that lowers the learning rate when a metric no longer improves.
#include "ferrite/nn/optim/schedule.h"

namespace ferrite::nn {

/// Options of PlateauSchedule: what counts as an improvement, and how rates fall. They are ReduceLROnPlateau's.
struct PlateauOptions {
  bool maximize = false;       ///< whether a larger metric is better: PyTorch's mode
  double factor = 0.1;         ///< what a reduction multiplies the rates by, in [0, 1)
  std::int64_t patience = 10;  ///< metrics in a row without improvement that do not yet lower the rate
  double threshold = 1e-4;     ///< smallest improvement on the best metric that counts
  bool relative = true;        ///< whether the threshold is a part of the best metric: PyTorch's threshold_mode
  std::int64_t cooldown = 0;   ///< metrics after a reduction that do not count towards patience
  double low = 0;              ///< lower bound of the rates
  double epsilon = 1e-8;       ///< a reduction of a rate by this or less is not made
};

/// Lowers the rate by a factor after more than `patience` metrics in a row that do not improve on the best, as
/// torch.optim.lr_scheduler.ReduceLROnPlateau. NaN never improves.
class PlateauSchedule final : public Schedule {
 public:
  /// Throws ValueError for a factor outside [0, 1) and other options below 0.
  PlateauSchedule(const Optimizer& optimizer, const PlateauOptions& options = {});
  /// Counts a step (or epoch) with this metric. Throws as Schedule::advance.
  void advance(double metric);
  std::string summary() const override;

 private:
  double rate(std::int64_t, double base) const override { return base; }
  double rate_in(const ScheduleState& state, std::size_t group) const override;
  bool better(double metric, double best) const;

  PlateauOptions options_;
};

}  // namespace ferrite::nn
