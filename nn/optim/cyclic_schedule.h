#pragma once
/// Schedules that cycle the learning rate and, against it, the momentum.
#include "ferrite/nn/optim/schedule.h"

namespace ferrite::nn {

/// How a rate goes from one value to another.
enum class Anneal : std::uint8_t { cosine, linear };

struct OneCycleOptions {
  std::vector<double> max_learning_rate{};  ///< one, or one for each group
  std::int64_t total_steps = 0;
  double warm_up = 0.3;  ///< the part of the steps in which the rate rises: PyTorch's pct_start
  Anneal anneal = Anneal::cosine;
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double division = 25;         ///< the first rate is max / division
  double final_division = 1e4;  ///< the last is the first / final_division
  bool three_phases = false;    ///< back to the first rate as fast as up, then down
};

/// The 1cycle policy (Smith and Topin 2017, arXiv 1708.07120), as torch.optim.lr_scheduler.OneCycleLR: the rate rises
/// from max / division to max and falls to its last value, while the momentum (beta1 of Adam) falls from max_momentum
/// to base_momentum and rises again. The optimiser's own rates are replaced.
class OneCycleSchedule final : public Schedule {
 public:
  /// Throws ValueError for total_steps < 1, a warm_up outside [0, 1], rates and divisions that are not positive,
  /// another number of rates than 1 or groups, momenta outside [0, 1), and for an optimiser without momentum where it
  /// is to be cycled. `advance` throws ValueError after total_steps. The rate after the last step, which nothing uses,
  /// stays the lowest of a linear cycle; PyTorch's goes on below 0 there.
  OneCycleSchedule(Optimizer& optimizer, const OneCycleOptions& options);
  std::string summary() const override;

 private:
  struct Phase {
    double end;  ///< in steps
    double from, to, momentum_from, momentum_to;
  };
  double rate(std::int64_t steps, double base) const override;
  std::optional<double> momentum_in(const ScheduleState& state) const override;
  std::pair<const Phase*, double> phase_at(std::int64_t steps) const;
  double between(double from, double to, double part) const;

  OneCycleOptions options_;
  std::vector<Phase> phases_;  ///< rates as multiples of the first one
};

/// How the height of the cycles changes.
enum class CycleHeight : std::uint8_t {
  same,         ///< PyTorch's triangular
  halved,       ///< after each cycle: triangular2
  exponential,  ///< by factor^steps: exp_range
};

struct CyclicOptions {
  std::vector<double> base_learning_rate{};  ///< one, or one for each group
  std::vector<double> max_learning_rate{};   ///< likewise
  std::int64_t steps_up = 2000;
  std::optional<std::int64_t> steps_down{};  ///< as many as up unless given
  CycleHeight height = CycleHeight::same;
  double factor = 1;
  bool cycle_momentum = true;
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};

/// Cyclical learning rates (Smith 2017, arXiv 1506.01186), as torch.optim.lr_scheduler.CyclicLR: between base and max
/// in straight lines, while the momentum (beta1 of Adam) goes from max_momentum to base_momentum and back. The
/// optimiser's own rates are replaced.
class CyclicSchedule final : public Schedule {
 public:
  /// Throws ValueError for steps < 1, rates that are negative or not finite, another number of rates than 1 or groups,
  /// momenta outside [0, 1), and for an optimiser without momentum where it is to be cycled.
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
