#pragma once
/// A schedule that lowers the learning rate when a metric no longer improves.
#include "ferrite/nn/optim/schedule.h"

namespace ferrite::nn {

/// Options of PlateauSchedule, as of PyTorch's ReduceLROnPlateau.
struct PlateauOptions {
  bool maximize = false;  ///< whether a larger metric is better: PyTorch's mode
  double factor = 0.1;    ///< of the learning rate, below 1
  std::int64_t patience = 10;
  double threshold = 1e-4;
  bool relative = true;  ///< whether the threshold is relative to the best metric: PyTorch's threshold_mode
  std::int64_t cooldown = 0;
  double low = 0;         ///< lower bound of the rates
  double epsilon = 1e-8;  ///< smallest change of a rate; smaller ones are not made
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
