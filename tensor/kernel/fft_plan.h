#pragma once
/// Plans of Fourier transforms: those that their maker owns, and those that a thread keeps.
#include <memory>

#include "ferrite/tensor/kernel/fft.h"

namespace ferrite::detail {

/// A plan of a real or complex transform of n points, n > 0, with memory to work in, for one thread at a time. For
/// whoever must ask for nothing later: operations take those that their thread holds (tensor/kernel/fft_plan.h).
template <class T>
std::shared_ptr<const FftPlan<T>> new_fft_plan(std::int64_t n, bool real);

/// The plan of a real or complex transform of n points, n > 0, with memory to work in. This thread's, until it asks for
/// another: a thread keeps its latest few.
template <class T>
const FftPlan<T>& fft_plan(std::int64_t n, bool real);

}  // namespace ferrite::detail
