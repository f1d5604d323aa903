/// Schedules of the learning rate.
#include "ferrite/nn/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
using ferrite::detail::check_not_negative;

void Schedule::advance() { set_steps(steps_ + 1); }

void Schedule::set_steps(std::int64_t steps) { restore(steps, base_); }

void Schedule::restore(std::int64_t steps, double base) {
  if (ferrite::detail::frame().tracing)
    throw TraceError(
        "schedule: its count of steps is no part of the program that is traced, the rate would stay what it is now; "
        "advance after the compiled step");
  if (steps < 0) throw ValueError("schedule: the number of steps must not be negative, got " + std::to_string(steps));
  check_not_negative("schedule: the rate at first", {base});
  const double next = rate(steps, base);
  check_not_negative("schedule: the rate after " + std::to_string(steps) + " steps", {next});
  rate_.assign(full({}, next, Dtype::f64));
  steps_ = steps;
  base_ = base;
}

StepSchedule::StepSchedule(const Optimizer& optimizer, std::int64_t every, double factor)
    : Schedule(optimizer), every_(every), factor_(factor) {
  if (every < 1) throw ValueError("step schedule: the interval must be positive, got " + std::to_string(every));
  check_not_negative("step schedule: the factor", {factor});
}

double StepSchedule::rate(std::int64_t steps, double base) const {
  return base * std::pow(factor_, static_cast<double>(steps / every_));
}

CosineSchedule::CosineSchedule(const Optimizer& optimizer, std::int64_t length, double low)
    : Schedule(optimizer), length_(length), low_(low) {
  if (length < 1) throw ValueError("cosine schedule: the length must be positive, got " + std::to_string(length));
  check_not_negative("cosine schedule: the lowest rate", {low});
}

double CosineSchedule::rate(std::int64_t steps, double base) const {
  const double t = static_cast<double>(steps) / static_cast<double>(length_);
  return low_ + (base - low_) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

}  // namespace ferrite::nn
