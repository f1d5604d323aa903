#pragma once
/// Steps that make one value of several, and of parts of one.
#include <functional>
#include <memory>
#include <span>

#include "ferrite/nn/step.h"

namespace ferrite::nn::detail {

/// Adds values of equal rows, from the first on: ((x + y) + z) + ...
std::unique_ptr<Step> sum_step(const StepRows& rows, std::size_t terms);
/// Concatenates the rows of all values.
std::unique_ptr<Step> concat_step(std::span<const StepRows> rows);
/// Takes `width` numbers of each row, from `first` on.
std::unique_ptr<Step> columns_step(const StepRows& rows, std::int64_t first, std::int64_t width);
/// Multiplies a value by a number.
std::unique_ptr<Step> scale_step(const StepRows& rows, double factor);
/// Multiplies two values, number by number.
std::unique_ptr<Step> product_step(const StepRows& rows);
/// Traces a function of several values once and runs the planned program.
std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together);
/// Runs a step whose values come at different times: early rows wait for the others, at most `most` of them.
std::unique_ptr<Step> aligned_step(std::unique_ptr<Step> step, std::span<const StepRows> rows, std::int64_t most);

}  // namespace ferrite::nn::detail
