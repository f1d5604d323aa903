#pragma once
/// Schedules that cycle the learning rate and, in the opposite direction, the momentum.
#include "ferrite/nn/optim/schedule.h"

namespace ferrite::nn {

/// The curve along which a rate moves from one value to another.
enum class Anneal : std::uint8_t { cosine, linear };

/// Options of OneCycleSchedule: its highest rates, the phases, and the range of the momentum.
struct OneCycleOptions {
  std::vector<double> max_learning_rate{};  ///< highest rate: one for all groups, or one for each
  std::int64_t total_steps = 0;             ///< number of steps of the whole cycle
  double warm_up = 0.3;                     ///< the part of the steps during which the rate rises: PyTorch's pct_start
  Anneal anneal = Anneal::cosine;           ///< curve of the rate and of the momentum
  bool cycle_momentum = true;               ///< false: leaves the momentum alone
  double base_momentum = 0.85;              ///< momentum when the rate is highest
  double max_momentum = 0.95;               ///< momentum at the beginning and the end
  double division = 25;                     ///< the first rate is max_learning_rate / division
  double final_division = 1e4;              ///< the last rate is the first one / final_division
  bool three_phases = false;  ///< returns to the first rate in as many steps as it rose, then falls to the last one
};

/// The 1cycle policy (Smith and Topin 2017, arXiv 1708.07120), as torch.optim.lr_scheduler.OneCycleLR: the rate rises
/// from max / division to max and falls to its last value, while the momentum (beta1 of Adam) falls from max_momentum
/// to base_momentum and rises again. Replaces the optimiser's own rates.
class OneCycleSchedule final : public Schedule {
 public:
  /// Throws ValueError for total_steps < 1, a warm_up outside [0, 1], rates that are negative or not finite, divisions
  /// that are not positive, a number of rates other than 1 or that of the groups, momenta outside [0, 1), and an
  /// optimiser without momentum if momentum is cycled. `advance` throws ValueError after total_steps. The rate after
  /// the last step, which nothing uses, stays the lowest one of a linear cycle; PyTorch's falls below 0 there.
  OneCycleSchedule(Optimizer& optimizer, const OneCycleOptions& options);
  std::string summary() const override;

 private:
  struct Phase {
    double end;  ///< end of the phase, in steps
    double from, to, momentum_from, momentum_to;
  };
  double rate(std::int64_t steps, double base) const override;
  std::optional<double> momentum_in(const ScheduleState& state) const override;
  std::pair<const Phase*, double> phase_at(std::int64_t steps) const;
  double between(double from, double to, double part) const;

  OneCycleOptions options_;
  std::vector<Phase> phases_;  ///< rates are multiples of the first rate
};

/// The change of a cycle's height, the distance of its highest rate from the base rate, over time.
enum class CycleHeight : std::uint8_t {
  same,         ///< all cycles have the same height: PyTorch's triangular
  halved,       ///< each cycle has half the height of the one before: triangular2
  exponential,  ///< after n steps multiplied by CyclicOptions::factor^n: exp_range
};

/// Options of CyclicSchedule: range of the rates, length and height of the cycles, and range of the momentum.
struct CyclicOptions {
  std::vector<double> base_learning_rate{};  ///< lowest rate: one for all groups, or one for each
  std::vector<double> max_learning_rate{};   ///< highest rate: one for all groups, or one for each
  std::int64_t steps_up = 2000;              ///< steps from the lowest rate to the highest
  std::optional<std::int64_t> steps_down{};  ///< steps back to the lowest rate; unset: steps_up
  CycleHeight height = CycleHeight::same;
  double factor = 1;           ///< used with CycleHeight::exponential alone: PyTorch's gamma
  bool cycle_momentum = true;  ///< false: leaves the momentum alone
  double base_momentum = 0.8;  ///< momentum at the highest rate of a cycle of full height
  double max_momentum = 0.9;   ///< momentum at the lowest rate
};

/// Cyclical learning rates (Smith 2017, arXiv 1506.01186), as torch.optim.lr_scheduler.CyclicLR: the rate moves between
/// base and max in straight lines, while the momentum (beta1 of Adam) moves from max_momentum to base_momentum and
/// back. Replaces the optimiser's own rates.
class CyclicSchedule final : public Schedule {
 public:
  /// Throws ValueError for steps < 1, rates or a factor that are negative or not finite, a number of rates other than 1
  /// or that of the groups, momenta outside [0, 1), and an optimiser without momentum if momentum is cycled.
  CyclicSchedule(Optimizer& optimizer, const CyclicOptions& options);
  std::string summary() const override;

 private:
  double rate(std::int64_t steps, double base) const override;
  double rate_in(const ScheduleState& state, std::size_t group) const override;
  std::optional<double> momentum_in(const ScheduleState& state) const override;
  double scale_at(std::int64_t steps) const;

  CyclicOptions options_;
};

}  // namespace ferrite::nn
