/// Schedules of learning rates: rates as functions of the number of steps, the schedules made of them, cyclic
/// schedules, and the plateau schedule, which follows a metric.
#include "ferrite/nn/optim/schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ferrite/nn/optim/cyclic_schedule.h"
#include "ferrite/nn/optim/plateau_schedule.h"
#include "ferrite/nn/optim/rates.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/recorder.h"

// ---- rates ---------------------------------------------------------------------------------------------

namespace ferrite::nn {
namespace {

using ferrite::detail::check_not_negative;

void check_length(const char* who, const char* what, std::int64_t length) {
  if (length < 1)
    throw ValueError(std::string(who) + ": the " + what + " must be positive, got " + std::to_string(length));
}

void check_functions(const char* who, const std::vector<RateFunction>& rates) {
  if (rates.empty()) throw ValueError(std::string(who) + ": there are no functions");
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (!rates[i]) throw ValueError(std::string(who) + ": function " + std::to_string(i) + " is null");
}

double as_double(std::int64_t n) { return static_cast<double>(n); }

double cosine(double base, double low, double part) {
  return low + (base - low) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

}  // namespace

RateFunction step_rate(std::int64_t every, double factor) {
  check_length("step schedule", "interval", every);
  check_not_negative("step schedule: the factor", {factor});
  return [=](std::int64_t steps, double base) { return base * std::pow(factor, as_double(steps / every)); };
}

RateFunction multistep_rate(std::vector<std::int64_t> milestones, double factor) {
  check_not_negative("multistep schedule: the factor", {factor});
  for (const std::int64_t m : milestones) check_length("multistep schedule", "milestone", m);
  std::ranges::sort(milestones);
  return [milestones = std::move(milestones), factor](std::int64_t steps, double base) {
    const auto reached = std::ranges::upper_bound(milestones, steps) - milestones.begin();
    return base * std::pow(factor, static_cast<double>(reached));
  };
}

RateFunction constant_rate(double factor, std::int64_t length) {
  check_length("constant schedule", "length", length);
  check_not_negative("constant schedule: the factor", {factor});
  return [=](std::int64_t steps, double base) { return steps < length ? base * factor : base; };
}

RateFunction linear_rate(double start, double end, std::int64_t length) {
  check_length("linear schedule", "length", length);
  check_not_negative("linear schedule: start and end", {start, end});
  return [=](std::int64_t steps, double base) {
    return base * (start + (end - start) * as_double(std::min(steps, length)) / as_double(length));
  };
}

RateFunction exponential_rate(double factor) {
  check_not_negative("exponential schedule: the factor", {factor});
  return [=](std::int64_t steps, double base) { return base * std::pow(factor, as_double(steps)); };
}

RateFunction polynomial_rate(std::int64_t length, double power) {
  check_length("polynomial schedule", "length", length);
  check_not_negative("polynomial schedule: the power", {power});
  return [=](std::int64_t steps, double base) {
    return base * std::pow(1 - as_double(std::min(steps, length)) / as_double(length), power);
  };
}

RateFunction cosine_rate(std::int64_t length, double low) {
  check_length("cosine schedule", "length", length);
  check_not_negative("cosine schedule: the lowest rate", {low});
  return [=](std::int64_t steps, double base) { return cosine(base, low, as_double(steps) / as_double(length)); };
}

RateFunction warm_restarts_rate(std::int64_t length, std::int64_t multiple, double low) {
  check_length("warm restarts", "length", length);
  check_length("warm restarts", "multiple", multiple);
  check_not_negative("warm restarts: the lowest rate", {low});
  return [=](std::int64_t steps, double base) {
    double period = as_double(length), at = as_double(multiple == 1 ? steps % length : steps);
    while (at >= period) {
      at -= period;
      period *= as_double(multiple);
    }
    return cosine(base, low, at / period);
  };
}

RateFunction multiplicative_rate(std::function<double(std::int64_t)> f) {
  if (!f) throw ValueError("multiplicative schedule: the function is null");
  return [f = std::move(f)](std::int64_t steps, double base) {
    for (std::int64_t i = 1; i <= steps; ++i) base *= f(i);
    return base;
  };
}

RateFunction warm_up_rate(std::int64_t length, RateFunction then) {
  check_length("warm-up", "length", length);
  check_functions("warm-up", {then});
  return [length, then = std::move(then)](std::int64_t steps, double base) {
    return steps < length ? base * as_double(steps + 1) / as_double(length + 1) : then(steps - length, base);
  };
}

RateFunction sequential_rate(std::vector<RateFunction> rates, std::vector<std::int64_t> milestones) {
  check_functions("sequential schedule", rates);
  if (milestones.size() + 1 != rates.size())
    throw ValueError("sequential schedule: " + std::to_string(milestones.size()) + " milestones for " +
                     std::to_string(rates.size()) + " functions; there must be one fewer");
  for (std::size_t i = 0; i < milestones.size(); ++i)
    if (milestones[i] <= (i > 0 ? milestones[i - 1] : 0))
      throw ValueError("sequential schedule: milestones must be positive and ascend, got " +
                       std::to_string(milestones[i]) + " at place " + std::to_string(i));
  return [rates = std::move(rates), milestones = std::move(milestones)](std::int64_t steps, double base) {
    const auto k = static_cast<std::size_t>(std::ranges::upper_bound(milestones, steps) - milestones.begin());
    return rates[k](k > 0 ? steps - milestones[k - 1] : steps, base);
  };
}

RateFunction chained_rate(std::vector<RateFunction> rates) {
  check_functions("chained schedule", rates);
  return [rates = std::move(rates)](std::int64_t steps, double base) {
    for (const RateFunction& rate : rates) base = rate(steps, base);
    return base;
  };
}

}  // namespace ferrite::nn

namespace ferrite::nn::detail {
namespace {

/// The value of an option: one number, or one for each group.
using ScheduleOption = std::vector<double>;

/// Returns a schedule in words: "cosine(length=30, low=0)".
std::string summary_of_schedule(std::string_view kind,
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

}  // namespace

}  // namespace ferrite::nn::detail

namespace ferrite::nn {

// ---- schedules by a function of the steps ----------------------------------------------------------------

Schedule::Schedule(const Optimizer& optimizer) {
  for (std::size_t group = 0; group < optimizer.groups(); ++group) {
    rates_.push_back(optimizer.learning_rate_variable(group));
    state_.bases.push_back(optimizer.learning_rate(group));
  }
}

void Schedule::follow_momentum(Optimizer& optimizer, double first) {
  for (std::size_t group = 0; group < optimizer.groups(); ++group) (void)optimizer.momentum(group);  // may throw
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
        "schedule: its count of steps is not part of the traced program, so the rate would never change; "
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

// ---- cycles --------------------------------------------------------------------------------------------

namespace {

void check_momenta(const char* who, double base, double max) {
  for (const double m : {base, max})
    if (!(m >= 0 && m < 1))
      throw ValueError(std::string(who) + ": momenta must lie in [0, 1), got " + Scalar(base).str() + " and " +
                       Scalar(max).str());
}

/// Returns one rate for each group.
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

/// Returns the phase of a step, and the part of it that is over.
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
    // The rate keeps its last value after the last step, where a straight line would continue below 0.
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

/// Returns how far a step is on the way from base to max, including the cycle's height.
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

// ---- plateaus ------------------------------------------------------------------------------------------

namespace {

// Indices of the remembered values.
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
