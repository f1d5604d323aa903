/// Learning rates as functions of the number of steps.
#include "ferrite/nn/optim/rates.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "ferrite/tensor/error.h"

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
