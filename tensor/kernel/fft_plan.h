#pragma once
/// Plans of Fourier transforms: those that their maker owns, and those that a thread keeps.
#include <memory>

#include "ferrite/tensor/kernel/fft.h"

namespace ferrite::detail {

/// Returns a new plan of a real or complex transform of n points, n > 0, with its workspace, for one thread at a time.
/// For code that must not allocate later; operations use the plans of their thread, `fft_plan`.
template <class T>
std::shared_ptr<const FftPlan<T>> new_fft_plan(std::int64_t n, bool real);

/// Returns this thread's plan of a real or complex transform of n points, n > 0, with its workspace. Valid until the
/// thread asks for another: it keeps its latest few.
template <class T>
const FftPlan<T>& fft_plan(std::int64_t n, bool real);

}  // namespace ferrite::detail
