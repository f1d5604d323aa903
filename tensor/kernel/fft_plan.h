#pragma once
/// Plans of Fourier transforms that their maker owns.
#include <memory>

#include "ferrite/tensor/kernel/fft.h"

namespace ferrite::detail {

/// A plan of a real or complex transform of n points, n > 0, with memory to work in, for one thread at a time. For
/// whoever must ask for nothing later: operations take those that their thread holds (tensor/ops/detail/fft_plans.h).
template <class T>
std::shared_ptr<const FftPlan<T>> new_fft_plan(std::int64_t n, bool real);

}  // namespace ferrite::detail
