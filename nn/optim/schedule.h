#pragma once
/// Schedules: the learning rate as a function of the number of steps.
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

/// Learning rate as a function of the number of finished steps (or epochs). Call `advance` after each, outside of
/// compiled functions: there it throws TraceError. A compiled step follows the rate.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Counts one step and sets the optimiser's learning rate. Throws TraceError inside a compiled function, which would
  /// do so once and for all; ValueError, before anything has changed, when the rate comes out negative or not finite.
  void advance();
  std::int64_t steps() const { return steps_; }
  /// Goes to a given number of finished steps. Throws as `advance`, and ValueError below 0.
  void set_steps(std::int64_t steps);
  /// The rate before the first step.
  double base() const { return base_; }
  /// Goes to where another schedule was: for resuming.
  void restore(std::int64_t steps, double base);
  /// The rate that this schedule has after so many steps from a rate at first.
  double rate_at(std::int64_t steps, double base) const { return rate(steps, base); }

 protected:
  explicit Schedule(const Optimizer& optimizer)
      : rate_(optimizer.learning_rate_variable()), base_(optimizer.learning_rate()) {}
  /// The rate after so many steps, from the rate at first.
  virtual double rate(std::int64_t steps, double base) const = 0;

 private:
  State rate_;
  double base_;
  std::int64_t steps_ = 0;
};

/// base * factor^(steps / every), as torch.optim.lr_scheduler.StepLR.
class StepSchedule final : public Schedule {
 public:
  /// Throws ValueError for every < 1 and a factor that is negative or not finite.
  StepSchedule(const Optimizer& optimizer, std::int64_t every, double factor = 0.1);

 private:
  double rate(std::int64_t steps, double base) const override;
  std::int64_t every_;
  double factor_;
};

/// low + (base - low) (1 + cos(pi steps / length)) / 2, as torch's CosineAnnealingLR with T_max = length
/// (arXiv 1608.03983).
class CosineSchedule final : public Schedule {
 public:
  /// Throws ValueError for length < 1 and a lowest rate that is negative or not finite.
  CosineSchedule(const Optimizer& optimizer, std::int64_t length, double low = 0);

 private:
  double rate(std::int64_t steps, double base) const override;
  std::int64_t length_;
  double low_;
};

}  // namespace ferrite::nn
