#pragma once
/// Learning rates as functions of the number of steps, which schedules are made of.
#include <cstdint>
#include <functional>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite::nn {

/// The rate after so many finished steps (or epochs), from the rate at first.
using RateFunction = std::function<double(std::int64_t steps, double base)>;

// Each follows the scheduler of PyTorch that is named (docs.pytorch.org/docs/stable/optim.html), in closed form. Each
// throws ValueError for lengths and intervals below 1, and for factors and rates that are negative or not finite.

/// base factor^(steps / every): StepLR.
RateFunction step_rate(std::int64_t every, double factor = 0.1);
/// base factor^(number of milestones reached): MultiStepLR. Milestones in any order; one that is there twice counts
/// twice.
RateFunction multistep_rate(std::vector<std::int64_t> milestones, double factor = 0.1);
/// base factor for the first steps, then base: ConstantLR.
RateFunction constant_rate(double factor = 1.0 / 3, std::int64_t length = 5);
/// From base start to base end in so many steps, then base end: LinearLR.
RateFunction linear_rate(double start = 1.0 / 3, double end = 1, std::int64_t length = 5);
/// base factor^steps: ExponentialLR.
RateFunction exponential_rate(double factor);
/// base (1 - steps / length)^power, then 0: PolynomialLR.
RateFunction polynomial_rate(std::int64_t length = 5, double power = 1);
/// low + (base - low) (1 + cos(pi steps / length)) / 2: CosineAnnealingLR (arXiv 1608.03983).
RateFunction cosine_rate(std::int64_t length, double low = 0);
/// The same begun again after `length` steps, then after `multiple` times as many, and so on:
/// CosineAnnealingWarmRestarts. Throws ValueError for a multiple below 1, too.
RateFunction warm_restarts_rate(std::int64_t length, std::int64_t multiple = 1, double low = 0);
/// base f(1) f(2) ... f(steps): MultiplicativeLR. Throws ValueError for a null function.
RateFunction multiplicative_rate(std::function<double(std::int64_t)> f);
/// base (steps + 1) / (length + 1) for so many steps, then the other function from its beginning.
RateFunction warm_up_rate(std::int64_t length, RateFunction then);
/// One after the other: the k-th begins with its own step 0 at milestone k - 1: SequentialLR. Throws ValueError for a
/// null function, unless milestones ascend and there is one fewer than functions.
RateFunction sequential_rate(std::vector<RateFunction> rates, std::vector<std::int64_t> milestones);
/// Each from the rate that the one before it gives, with the same number of steps: ChainedScheduler, where all multiply
/// the rate. Throws ValueError for no or a null function.
RateFunction chained_rate(std::vector<RateFunction> rates);

}  // namespace ferrite::nn
