#pragma once
/// Where the element of a rank stands.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// i64 index of the k-th smallest element along an axis, k from 1; the axis gets the extent 1. A NaN is larger than all
/// numbers; of equal elements the first comes first.
Tensor rank_index(const Tensor& x, int axis, std::int64_t k);

}  // namespace ferrite::detail
