#pragma once
/// Products added to a matrix in place.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Products over so many terms at most can be added to what stands in memory already with the bits of a product and a
/// sum (docs/numerics.md, rule 2).
inline constexpr std::int64_t kMostTermsAdded = 256;

/// total [M, N] += a [M, K] . b [K, N], floats of one dtype, K at most kMostTermsAdded; total is contiguous and nobody
/// else reads it.
void add_product(const Tensor& a, const Tensor& b, Tensor& total);

}  // namespace ferrite::detail
