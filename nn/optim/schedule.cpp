#include "ferrite/nn/optim/schedule.h"

#include <cmath>
#include <numbers>

#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {

void Schedule::advance() { set_steps(steps_ + 1); }

void Schedule::set_steps(std::int64_t steps) {
  if (ferrite::detail::frame().tracing)
    throw TraceError(
        "schedule: its count of steps is no part of the program that is traced, the rate would stay what it is now; "
        "advance after the compiled step");
  steps_ = steps;
  optimizer_->set_learning_rate(rate(steps_, base_));
}

void Schedule::restore(std::int64_t steps, double base) {
  base_ = base;
  set_steps(steps);
}

StepSchedule::StepSchedule(Optimizer& optimizer, std::int64_t every, double factor)
    : Schedule(optimizer), every_(every), factor_(factor) {
  if (every < 1) throw ValueError("step schedule: the interval must be positive, got " + std::to_string(every));
}

double StepSchedule::rate(std::int64_t steps, double base) const {
  return base * std::pow(factor_, static_cast<double>(steps / every_));
}

CosineSchedule::CosineSchedule(Optimizer& optimizer, std::int64_t length, double low)
    : Schedule(optimizer), length_(length), low_(low) {
  if (length < 1) throw ValueError("cosine schedule: the length must be positive, got " + std::to_string(length));
}

double CosineSchedule::rate(std::int64_t steps, double base) const {
  const double t = static_cast<double>(steps) / static_cast<double>(length_);
  return low_ + (base - low_) * (1 + std::cos(std::numbers::pi * t)) / 2;
}

}  // namespace ferrite::nn
