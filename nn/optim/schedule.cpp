/// Schedules of the learning rate.
#include "ferrite/nn/optim/schedule.h"

#include <charconv>
#include <cmath>

#include "ferrite/nn/optim/detail/schedule_summary.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn {
using ferrite::detail::check_not_negative;

Schedule::Schedule(const Optimizer& optimizer) {
  for (std::size_t group = 0; group < optimizer.groups(); ++group) {
    rates_.push_back(optimizer.learning_rate_variable(group));
    state_.bases.push_back(optimizer.learning_rate(group));
  }
}

void Schedule::follow_momentum(Optimizer& optimizer, double first) {
  for (std::size_t group = 0; group < optimizer.groups(); ++group) (void)optimizer.momentum(group);  // throws
  for (std::size_t group = 0; group < optimizer.groups(); ++group) {
    optimizer.set_momentum(first, group);
    momenta_.push_back(optimizer.momentum_variable(group));
  }
}

void Schedule::advance() { set_steps(state_.steps + 1); }

void Schedule::set_steps(std::int64_t steps) {
  ScheduleState next = state_;
  next.steps = steps;
  restore(next);
}

void Schedule::restore(std::int64_t steps, double base) {
  ScheduleState next = state_;
  next.steps = steps;
  next.bases.assign(next.bases.size(), base);
  restore(next);
}

std::string Schedule::fault_of(const ScheduleState& state) const {
  if (state.steps < 0) return "the number of steps must not be negative, got " + std::to_string(state.steps);
  if (state.bases.size() != rates_.size() || state.memory.size() != state_.memory.size())
    return "has " + std::to_string(state.bases.size()) + " groups and " + std::to_string(state.memory.size()) +
           " values remembered, the schedule " + std::to_string(rates_.size()) + " and " +
           std::to_string(state_.memory.size());
  try {
    for (std::size_t group = 0; group < rates_.size(); ++group) {
      check_not_negative("the rate at first", {state.bases[group]});
      check_not_negative("the rate after " + std::to_string(state.steps) + " steps", {rate_in(state, group)});
    }
  } catch (const ValueError& e) {
    return e.what();
  }
  return {};
}

void Schedule::restore(const ScheduleState& state) {
  if (ferrite::detail::frame().tracing)
    throw TraceError(
        "schedule: its count of steps is no part of the program that is traced, the rate would stay what it is now; "
        "advance after the compiled step");
  const std::string fault = fault_of(state);
  if (!fault.empty()) throw ValueError("schedule: " + fault);
  std::vector<Tensor> next;
  for (std::size_t group = 0; group < rates_.size(); ++group)
    next.push_back(full({}, rate_in(state, group), Dtype::f64));
  ScheduleState copy = state;
  for (std::size_t group = 0; group < rates_.size(); ++group) rates_[group].assign(next[group]);
  if (const std::optional<double> momentum = momentum_in(state))
    for (const State& m : momenta_) m.assign(full({}, *momentum, Dtype::f64));
  state_ = std::move(copy);
}

std::string detail::summary_of_schedule(std::string_view kind,
                                        std::initializer_list<std::pair<std::string_view, ScheduleOption>> options) {
  std::string text(kind);
  const auto number = [](double value) {
    char digits[32];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
    return std::string(std::begin(digits), end);
  };
  const char* separator = "(";
  for (const auto& [name, value] : options) {
    text += separator + std::string(name) + "=";
    for (std::size_t i = 0; i < value.size(); ++i) text += (i ? " " : "") + number(value[i]);
    separator = ", ";
  }
  return text + ")";
}

std::string StepSchedule::summary() const {
  return detail::summary_of_schedule("step", {{"every", {static_cast<double>(every_)}}, {"factor", {factor_}}});
}

std::string CosineSchedule::summary() const {
  return detail::summary_of_schedule("cosine", {{"length", {static_cast<double>(length_)}}, {"low", {low_}}});
}

FunctionSchedule::FunctionSchedule(const Optimizer& optimizer, RateFunction f, std::string name)
    : Schedule(optimizer), f_(std::move(f)), name_(std::move(name)) {
  if (!f_) throw ValueError("schedule: the function of the rate is null");
  begin();
}

}  // namespace ferrite::nn
