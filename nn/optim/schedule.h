#pragma once
/// Schedules: the learning rate of an optimiser as a function of the number of steps.
#include <optional>
#include <string>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/nn/optim/rates.h"

namespace ferrite::nn {

/// The progress of a schedule, for checkpoints.
struct ScheduleState {
  std::int64_t steps = 0;        ///< number of finished steps (or epochs)
  std::vector<double> bases{};   ///< initial rate of each group, from which the schedule computes
  std::vector<double> memory{};  ///< other values that the schedule remembers, such as the best metric; usually none
};

/// The learning rate as a function of the number of finished steps (or epochs), for every group of an optimiser from
/// its own initial rate. Call `advance` after each step, outside compiled functions: inside, it throws TraceError. A
/// compiled step follows the rate.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Counts one step and sets the optimiser's learning rates. Throws TraceError inside a compiled function, which would
  /// freeze the rate; ValueError, before anything changes, if a rate would be negative or not finite.
  void advance();
  /// Returns the number of finished steps (or epochs).
  std::int64_t steps() const { return state_.steps; }
  /// Moves to a given number of finished steps. Throws as `advance`, and ValueError below 0.
  void set_steps(std::int64_t steps);
  /// Returns the initial rate of a group, `base` of the schedule's formula.
  double base(std::size_t group = 0) const { return state_.bases.at(group); }
  /// Returns the progress, which `restore` takes.
  const ScheduleState& state() const& { return state_; }
  ScheduleState state() const&& { return state_; }
  /// Restores the progress of another schedule, to resume training. Throws as `set_steps`, and ValueError if the number
  /// of groups or of remembered values differs.
  void restore(const ScheduleState& state);
  /// Restores a number of steps and one initial rate for all groups.
  void restore(std::int64_t steps, double base);
  /// Returns what is wrong with a state read from a file; empty if nothing is.
  std::string fault_of(const ScheduleState& state) const;
  /// Returns the rate after a number of finished steps for the initial rate `base`; of a schedule that depends on more
  /// than the steps (PlateauSchedule), `base` itself.
  double rate_at(std::int64_t steps, double base) const { return rate(steps, base); }
  /// Returns the schedule and its options in words, "cosine(length=30, low=0)". A checkpoint compares it to find out
  /// whether training continues with the same schedule; if it is empty, the default, rates at some of the finished
  /// steps are compared.
  virtual std::string summary() const { return {}; }

 protected:
  explicit Schedule(const Optimizer& optimizer);
  /// Returns the rate after a number of steps from the initial rate `base`.
  virtual double rate(std::int64_t steps, double base) const = 0;
  /// Returns the rate of a group in a state; to be overridden if it depends on more than the steps.
  virtual double rate_in(const ScheduleState& state, std::size_t group) const {
    return rate(state.steps, state.bases[group]);
  }
  /// Returns the momentum of all groups in a state if the schedule changes it.
  virtual std::optional<double> momentum_in(const ScheduleState&) const { return std::nullopt; }

  /// For constructors: set the initial remembered values, the initial rates of the groups, the momentum to follow, and
  /// the rates before the first step.
  void remember(std::vector<double> memory) { state_.memory = std::move(memory); }
  void set_bases(std::vector<double> bases) { state_.bases = std::move(bases); }
  void follow_momentum(Optimizer& optimizer, double first);
  void begin() { restore(ScheduleState(state_)); }

 private:
  std::vector<State> rates_, momenta_;  ///< rates and momenta, by group
  ScheduleState state_;
};

/// A schedule by any function of the steps: PyTorch's LambdaLR, and its other schedulers by the functions of rates.h.
///
///   nn::FunctionSchedule schedule(adam, nn::warm_up_rate(500, nn::cosine_rate(10000)));
class FunctionSchedule final : public Schedule {
 public:
  /// Sets the rates for step 0. Without a name, a checkpoint can compare the function only by rates that it has given;
  /// a name such as "warm-up 500, cosine 10000" identifies it. Throws ValueError for a null function and as `advance`.
  FunctionSchedule(const Optimizer& optimizer, RateFunction f, std::string name = {});
  std::string summary() const override { return name_; }

 private:
  double rate(std::int64_t steps, double base) const override { return f_(steps, base); }
  RateFunction f_;
  std::string name_;
};

/// A schedule of base * factor^floor(steps / every), as torch.optim.lr_scheduler.StepLR.
class StepSchedule final : public Schedule {
 public:
  /// Throws ValueError for every < 1 and a factor that is negative or not finite.
  StepSchedule(const Optimizer& optimizer, std::int64_t every, double factor = 0.1)
      : Schedule(optimizer), f_(step_rate(every, factor)), every_(every), factor_(factor) {}
  std::string summary() const override;

 private:
  double rate(std::int64_t steps, double base) const override { return f_(steps, base); }
  RateFunction f_;
  std::int64_t every_;
  double factor_;
};

/// A schedule of low + (base - low) (1 + cos(pi steps / length)) / 2, as torch.optim.lr_scheduler.CosineAnnealingLR
/// with T_max = length (arXiv 1608.03983). After `length` steps the rate rises again.
class CosineSchedule final : public Schedule {
 public:
  /// Throws ValueError for length < 1 and a lowest rate that is negative or not finite.
  CosineSchedule(const Optimizer& optimizer, std::int64_t length, double low = 0)
      : Schedule(optimizer), f_(cosine_rate(length, low)), length_(length), low_(low) {}
  std::string summary() const override;

 private:
  double rate(std::int64_t steps, double base) const override { return f_(steps, base); }
  RateFunction f_;
  std::int64_t length_;
  double low_;
};

}  // namespace ferrite::nn
