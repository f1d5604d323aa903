/// Schedules that cycle the learning rate and the momentum.
#include "ferrite/nn/optim/cyclic_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ferrite/nn/optim/detail/schedule_summary.h"

namespace ferrite::nn {
namespace {

void check_momenta(const char* who, double base, double max) {
  for (const double m : {base, max})
    if (!(m >= 0 && m < 1))
      throw ValueError(std::string(who) + ": momenta must lie in [0, 1), got " + Scalar(base).str() + " and " +
                       Scalar(max).str());
}

/// One rate for each group.
std::vector<double> by_group(const char* who, const char* what, const std::vector<double>& rates, std::size_t groups) {
  if (rates.size() != 1 && rates.size() != groups)
    throw ValueError(std::string(who) + ": " + std::to_string(rates.size()) + " values of " + what + " for " +
                     std::to_string(groups) + " groups; give one, or one for each");
  for (const double r : rates) ferrite::detail::check_not_negative(std::string(who) + ": " + what, {r});
  return rates.size() == groups ? rates : std::vector<double>(groups, rates[0]);
}

OneCycleOptions checked(const OneCycleOptions& o) {
  if (o.total_steps < 1)
    throw ValueError("one cycle: total_steps must be positive, got " + std::to_string(o.total_steps));
  if (!(o.warm_up >= 0 && o.warm_up <= 1))
    throw ValueError("one cycle: warm_up must lie in [0, 1], got " + Scalar(o.warm_up).str());
  for (const double d : {o.division, o.final_division})
    if (!(d > 0) || !std::isfinite(d))
      throw ValueError("one cycle: divisions must be finite and positive, got " + Scalar(o.division).str() + " and " +
                       Scalar(o.final_division).str());
  check_momenta("one cycle", o.base_momentum, o.max_momentum);
  return o;
}

}  // namespace

OneCycleSchedule::OneCycleSchedule(Optimizer& optimizer, const OneCycleOptions& options)
    : Schedule(optimizer), options_(checked(options)) {
  std::vector<double> first = by_group("one cycle", "max_learning_rate", options.max_learning_rate, optimizer.groups());
  for (double& r : first) r /= options.division;
  const double steps = static_cast<double>(options.total_steps), up = options.warm_up * steps;
  const double most = options.division, least = 1 / options.final_division;
  const double high = options.max_momentum, low = options.base_momentum;
  if (options.three_phases) {
    phases_ = {{up - 1, 1, most, high, low}, {2 * up - 2, most, 1, low, high}, {steps - 1, 1, least, high, high}};
  } else {
    phases_ = {{up - 1, 1, most, high, low}, {steps - 1, most, least, low, high}};
  }
  set_bases(std::move(first));
  if (options.cycle_momentum) follow_momentum(optimizer, options.max_momentum);
  begin();
}

/// The phase of a step, and how much of it is over.
std::pair<const OneCycleSchedule::Phase*, double> OneCycleSchedule::phase_at(std::int64_t steps) const {
  if (steps > options_.total_steps)
    throw ValueError("one cycle: it has " + std::to_string(options_.total_steps) + " steps, asked for step " +
                     std::to_string(steps));
  double begin = 0;
  const double at = static_cast<double>(steps);
  for (const Phase& phase : phases_) {
    if (at > phase.end && &phase != &phases_.back()) {
      begin = phase.end;
      continue;
    }
    // The rate stays at its last value after the last step, where a straight line would go on below 0.
    const double part = phase.end > begin ? (at - begin) / (phase.end - begin) : 1;
    return {&phase, options_.anneal == Anneal::linear ? std::min(part, 1.0) : part};
  }
  return {};
}

double OneCycleSchedule::between(double from, double to, double part) const {
  if (options_.anneal == Anneal::linear) return from + (to - from) * part;
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

double OneCycleSchedule::rate(std::int64_t steps, double base) const {
  const auto [phase, part] = phase_at(steps);
  return between(base * phase->from, base * phase->to, part);
}

std::optional<double> OneCycleSchedule::momentum_in(const ScheduleState& state) const {
  const auto [phase, part] = phase_at(state.steps);
  return between(phase->momentum_from, phase->momentum_to, part);
}

CyclicSchedule::CyclicSchedule(Optimizer& optimizer, const CyclicOptions& options)
    : Schedule(optimizer), options_(options) {
  const std::int64_t down = options.steps_down.value_or(options.steps_up);
  if (options.steps_up < 1 || down < 1)
    throw ValueError("cyclic schedule: steps_up and steps_down must be positive, got " +
                     std::to_string(options.steps_up) + " and " + std::to_string(down));
  ferrite::detail::check_not_negative("cyclic schedule: the factor", {options.factor});
  check_momenta("cyclic schedule", options.base_momentum, options.max_momentum);
  options_.steps_down = down;
  options_.max_learning_rate =
      by_group("cyclic schedule", "max_learning_rate", options.max_learning_rate, optimizer.groups());
  set_bases(by_group("cyclic schedule", "base_learning_rate", options.base_learning_rate, optimizer.groups()));
  if (options.cycle_momentum) follow_momentum(optimizer, options.max_momentum);
  begin();
}

/// How far a step is from base to max, cycles' heights included.
double CyclicSchedule::scale_at(std::int64_t steps) const {
  const double up = static_cast<double>(options_.steps_up), down = static_cast<double>(*options_.steps_down);
  const double at = static_cast<double>(steps), total = up + down, ratio = up / total;
  const double cycle = std::floor(1 + at / total), x = 1 + at / total - cycle;
  const double part = x <= ratio ? x / ratio : (x - 1) / (ratio - 1);
  switch (options_.height) {
    case CycleHeight::same: return part;
    case CycleHeight::halved: return part / std::pow(2.0, cycle - 1);
    case CycleHeight::exponential: return part * std::pow(options_.factor, at);
  }
  return part;
}

double CyclicSchedule::rate(std::int64_t steps, double base) const {
  return base + (options_.max_learning_rate[0] - base) * scale_at(steps);
}

double CyclicSchedule::rate_in(const ScheduleState& state, std::size_t group) const {
  return state.bases[group] + (options_.max_learning_rate[group] - state.bases[group]) * scale_at(state.steps);
}

std::optional<double> CyclicSchedule::momentum_in(const ScheduleState& state) const {
  return options_.max_momentum - (options_.max_momentum - options_.base_momentum) * scale_at(state.steps);
}

std::string OneCycleSchedule::summary() const {
  const OneCycleOptions& o = options_;
  return detail::summary_of_schedule("one cycle", {{"max", o.max_learning_rate},
                                                   {"total_steps", {static_cast<double>(o.total_steps)}},
                                                   {"warm_up", {o.warm_up}},
                                                   {"linear", {o.anneal == Anneal::linear ? 1.0 : 0.0}},
                                                   {"cycle_momentum", {o.cycle_momentum ? 1.0 : 0.0}},
                                                   {"momentum", {o.base_momentum, o.max_momentum}},
                                                   {"division", {o.division}},
                                                   {"final_division", {o.final_division}},
                                                   {"three_phases", {o.three_phases ? 1.0 : 0.0}}});
}

std::string CyclicSchedule::summary() const {
  const CyclicOptions& o = options_;
  return detail::summary_of_schedule("cyclic", {{"max", o.max_learning_rate},
                                                {"steps_up", {static_cast<double>(o.steps_up)}},
                                                {"steps_down", {static_cast<double>(*o.steps_down)}},
                                                {"height", {static_cast<double>(o.height)}},
                                                {"factor", {o.factor}},
                                                {"cycle_momentum", {o.cycle_momentum ? 1.0 : 0.0}},
                                                {"momentum", {o.base_momentum, o.max_momentum}}});
}

}  // namespace ferrite::nn
