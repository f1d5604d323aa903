#pragma once
/// Schedules: the learning rate as a function of the number of steps.
#include <optional>
#include <string>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/nn/optim/rates.h"

namespace ferrite::nn {

/// Where a schedule stands.
struct ScheduleState {
  std::int64_t steps = 0;
  std::vector<double> bases{};   ///< the rate before the first step, by group
  std::vector<double> memory{};  ///< what a schedule remembers besides; most nothing
};

/// Learning rate as a function of the number of finished steps (or epochs), for every group of an optimiser from its
/// own rate at first. Call `advance` after each, outside of compiled functions: there it throws TraceError. A compiled
/// step follows the rate.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// Counts one step and sets the optimiser's learning rates. Throws TraceError inside a compiled function, which would
  /// do so once and for all; ValueError, before anything has changed, when a rate comes out negative or not finite.
  void advance();
  std::int64_t steps() const { return state_.steps; }
  /// Goes to a given number of finished steps. Throws as `advance`, and ValueError below 0.
  void set_steps(std::int64_t steps);
  /// The rate of a group before the first step.
  double base(std::size_t group = 0) const { return state_.bases.at(group); }
  const ScheduleState& state() const& { return state_; }
  ScheduleState state() const&& { return state_; }
  /// Goes to where another schedule was: for resuming. Throws as `set_steps`, and ValueError for another number of
  /// groups or of values remembered.
  void restore(const ScheduleState& state);
  /// The same from one rate at first of all groups.
  void restore(std::int64_t steps, double base);
  /// What is wrong with a state, as one reads it in a file; empty where nothing is.
  std::string fault_of(const ScheduleState& state) const;
  /// The rate that this schedule has after so many steps from a rate at first.
  double rate_at(std::int64_t steps, double base) const { return rate(steps, base); }
  /// The schedule and its options in words, "cosine(length=30, low=0)": by it a checkpoint tells whether training
  /// continues by the same schedule. Empty where not overridden; rates at some of the finished steps are compared then.
  virtual std::string summary() const { return {}; }

 protected:
  explicit Schedule(const Optimizer& optimizer);
  /// The rate after so many steps, from the rate at first.
  virtual double rate(std::int64_t steps, double base) const = 0;
  /// The rate of a group in a state, where it depends on more.
  virtual double rate_in(const ScheduleState& state, std::size_t group) const {
    return rate(state.steps, state.bases[group]);
  }
  /// The momentum of all groups in a state, where the schedule changes it.
  virtual std::optional<double> momentum_in(const ScheduleState&) const { return std::nullopt; }

  /// For constructors: the values remembered at first; sets rates of groups at first, and the rates that hold before
  /// the first step.
  void remember(std::vector<double> memory) { state_.memory = std::move(memory); }
  void set_bases(std::vector<double> bases) { state_.bases = std::move(bases); }
  void follow_momentum(Optimizer& optimizer, double first);
  void begin() { restore(ScheduleState(state_)); }

 private:
  std::vector<State> rates_, momenta_;  ///< by group
  ScheduleState state_;
};

/// A schedule by any function of the steps: PyTorch's LambdaLR, and every other by the functions of rates.h.
///
///   nn::FunctionSchedule schedule(adam, nn::warm_up_rate(500, nn::cosine_rate(10000)));
class FunctionSchedule final : public Schedule {
 public:
  /// Sets the rates for step 0. A function cannot be compared with that of an earlier run but by the rates that it has
  /// given: a name, "warm-up 500, cosine 10000", says more. Throws ValueError for a null function and as `advance`.
  FunctionSchedule(const Optimizer& optimizer, RateFunction f, std::string name = {});
  std::string summary() const override { return name_; }

 private:
  double rate(std::int64_t steps, double base) const override { return f_(steps, base); }
  RateFunction f_;
  std::string name_;
};

/// base * factor^(steps / every), as torch.optim.lr_scheduler.StepLR.
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

/// low + (base - low) (1 + cos(pi steps / length)) / 2, as torch's CosineAnnealingLR with T_max = length
/// (arXiv 1608.03983).
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
