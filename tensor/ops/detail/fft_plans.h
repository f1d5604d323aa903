#pragma once
/// Plans of Fourier transforms, made once for a length on each thread.
#include "ferrite/tensor/kernel/fft.h"

namespace ferrite::detail {

/// The plan of a real or complex transform of n points, n > 0, with memory to work in. This thread's, until it asks for
/// another: a thread keeps its latest few.
template <class T>
const FftPlan<T>& fft_plan(std::int64_t n, bool real);

}  // namespace ferrite::detail
