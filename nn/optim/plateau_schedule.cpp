/// A schedule that lowers the learning rate when a metric no longer improves.
#include "ferrite/nn/optim/plateau_schedule.h"

#include <algorithm>
#include <limits>

#include "ferrite/nn/optim/detail/schedule_summary.h"

namespace ferrite::nn {
namespace {

// What is remembered.
constexpr std::size_t kBest = 0, kBad = 1, kCooldown = 2, kReductions = 3;

}  // namespace

PlateauSchedule::PlateauSchedule(const Optimizer& optimizer, const PlateauOptions& options)
    : Schedule(optimizer), options_(options) {
  if (!(options.factor >= 0 && options.factor < 1))
    throw ValueError("plateau schedule: the factor must lie in [0, 1), got " + Scalar(options.factor).str());
  ferrite::detail::check_not_negative("plateau schedule: patience, threshold, cooldown, low and epsilon",
                                      {static_cast<double>(options.patience), options.threshold,
                                       static_cast<double>(options.cooldown), options.low, options.epsilon});
  const double worst = std::numeric_limits<double>::infinity();
  remember({options.maximize ? -worst : worst, 0, 0, 0});
}

bool PlateauSchedule::better(double metric, double best) const {
  const double t = options_.threshold;
  if (options_.maximize) return metric > (options_.relative ? best * (1 + t) : best + t);
  return metric < (options_.relative ? best * (1 - t) : best - t);
}

void PlateauSchedule::advance(double metric) {
  ScheduleState next = state();
  ++next.steps;
  double &best = next.memory[kBest], &bad = next.memory[kBad], &cooldown = next.memory[kCooldown];
  const bool improved = better(metric, best);
  if (improved) best = metric;
  bad = improved ? 0 : bad + 1;
  if (cooldown > 0) {
    --cooldown;
    bad = 0;
  }
  if (bad > static_cast<double>(options_.patience)) {
    ++next.memory[kReductions];
    cooldown = static_cast<double>(options_.cooldown);
    bad = 0;
  }
  restore(next);
}

double PlateauSchedule::rate_in(const ScheduleState& state, std::size_t group) const {
  double rate = state.bases[group];
  for (double n = 0; n < state.memory[kReductions]; ++n) {
    const double next = std::max(rate * options_.factor, options_.low);
    if (!(rate - next > options_.epsilon)) break;
    rate = next;
  }
  return rate;
}

std::string PlateauSchedule::summary() const {
  const PlateauOptions& o = options_;
  return detail::summary_of_schedule("plateau", {{"maximize", {o.maximize ? 1.0 : 0.0}},
                                                 {"factor", {o.factor}},
                                                 {"patience", {static_cast<double>(o.patience)}},
                                                 {"threshold", {o.threshold}},
                                                 {"relative", {o.relative ? 1.0 : 0.0}},
                                                 {"cooldown", {static_cast<double>(o.cooldown)}},
                                                 {"low", {o.low}},
                                                 {"epsilon", {o.epsilon}}});
}

}  // namespace ferrite::nn
