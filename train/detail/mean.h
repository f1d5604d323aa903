#pragma once
/// The mean of which sum and count are known.
#include "ferrite/train/loss.h"

namespace ferrite::train::detail {

/// sum / count, rank 0, of the sum's dtype. Throws ShapeError unless both hold one element.
Tensor mean_of(const Tensor& sum, const Tensor& count);

}  // namespace ferrite::train::detail
