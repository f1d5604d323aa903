#pragma once
/// Learning rates as functions of the number of steps, the building blocks of schedules.
#include <cstdint>
#include <functional>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite::nn {

/// A function that returns the rate after a number of finished steps (or epochs), given the initial rate `base`.
using RateFunction = std::function<double(std::int64_t steps, double base)>;

// Each function follows the named PyTorch scheduler (docs.pytorch.org/docs/stable/optim.html), in closed form. Each
// throws ValueError for lengths and intervals below 1, and for factors and rates that are negative or not finite.

/// Returns the rate base * factor^floor(steps / every), as StepLR.
RateFunction step_rate(std::int64_t every, double factor = 0.1);
/// Returns the rate base * factor^(number of milestones, in steps, that are reached), as MultiStepLR. Milestones may
/// come in any order; a repeated one counts repeatedly.
RateFunction multistep_rate(std::vector<std::int64_t> milestones, double factor = 0.1);
/// Returns the rate base * factor for the first `length` steps, then base, as ConstantLR.
RateFunction constant_rate(double factor = 1.0 / 3, std::int64_t length = 5);
/// Returns a rate that moves linearly from base * start to base * end in `length` steps and stays there, as LinearLR.
RateFunction linear_rate(double start = 1.0 / 3, double end = 1, std::int64_t length = 5);
/// Returns the rate base * factor^steps, as ExponentialLR.
RateFunction exponential_rate(double factor);
/// Returns the rate base * (1 - steps / length)^power, and 0 after `length` steps, as PolynomialLR.
RateFunction polynomial_rate(std::int64_t length = 5, double power = 1);
/// Returns the rate low + (base - low) (1 + cos(pi steps / length)) / 2, as CosineAnnealingLR (arXiv 1608.03983);
/// after `length` steps it rises again.
RateFunction cosine_rate(std::int64_t length, double low = 0);
/// Returns the rate of `cosine_rate`, started over after `length` steps, then after `multiple` times as many, and so
/// on, as CosineAnnealingWarmRestarts. Throws ValueError for a multiple below 1, too.
RateFunction warm_restarts_rate(std::int64_t length, std::int64_t multiple = 1, double low = 0);
/// Returns the rate base * f(1) * f(2) * ... * f(steps), as MultiplicativeLR. Throws ValueError for a null function.
RateFunction multiplicative_rate(std::function<double(std::int64_t)> f);
/// Returns the rate base * (steps + 1) / (length + 1) for `length` steps, then the rate of `then`, from its step 0.
RateFunction warm_up_rate(std::int64_t length, RateFunction then);
/// Returns the rates of several functions in sequence, as SequentialLR: the k-th starts at its own step 0 at milestone
/// k - 1. Throws ValueError for a null function, and unless milestones ascend and are one fewer than functions.
RateFunction sequential_rate(std::vector<RateFunction> rates, std::vector<std::int64_t> milestones);
/// Returns the result of applying all functions in turn, each to the rate from the one before and the same number of
/// steps, as ChainedScheduler if all multiply the rate. Throws ValueError for no functions or a null one.
RateFunction chained_rate(std::vector<RateFunction> rates);

}  // namespace ferrite::nn
