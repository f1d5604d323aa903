#pragma once
/// Sums and products added in place where nothing else can see the buffer, with the bits of `add`.
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

/// Whether nobody but this handle holds the tensor and its whole buffer.
bool owned_alone(const Tensor& t);

/// The value of a variable past the recorders: for those who write it in place, where it is known that nothing is being
/// recorded.
const Tensor& held_by(const Variable& variable);

/// total + d, as the operation `add`. Where nobody is recording and nobody else holds `total`, its own buffer takes
/// the sum; the bits are the same.
void accumulate(Tensor& total, const Tensor& d);

/// Products over so many terms at most can be added to what stands in memory already with the bits of a product and a
/// sum (docs/numerics.md, rule 2).
inline constexpr std::int64_t kMostTermsAdded = 256;

/// total [M, N] += a [M, K] . b [K, N], floats of one dtype, K at most kMostTermsAdded; total is contiguous and nobody
/// else reads it.
void add_product(const Tensor& a, const Tensor& b, Tensor& total);

}  // namespace ferrite::detail
