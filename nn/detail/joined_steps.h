#pragma once
/// Steps that make one value of several, and of parts of one.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// x + y + ..., from the first on, of rows that are equal.
std::unique_ptr<Step> sum_step(const StepRows& rows, std::size_t terms);
/// The values of a row side by side.
std::unique_ptr<Step> concat_step(std::span<const StepRows> rows);
/// Some values of each row, from `first` on.
std::unique_ptr<Step> columns_step(const StepRows& rows, std::int64_t first, std::int64_t width);
/// x times a number.
std::unique_ptr<Step> scale_step(const StepRows& rows, double factor);
/// x times y.
std::unique_ptr<Step> product_step(const StepRows& rows);
/// A program of several values.
std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together);
/// A step of values that wait for each other.
std::unique_ptr<Step> aligned_step(std::unique_ptr<Step> step, std::span<const StepRows> rows, const Pace& latest);

}  // namespace ferrite::nn::detail
