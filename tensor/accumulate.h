#pragma once
/// Sums and products added in place where nothing else can see the buffer, with the bits of `add`.
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::detail {

/// Returns whether this handle is the only holder of the tensor and of its whole buffer.
bool owned_alone(const Tensor& t);

/// Returns the value of a variable without telling the recorders. For code that writes the value in place while nothing
/// is being recorded.
const Tensor& held_by(const Variable& variable);

/// Sets total to total + d, as the operation `add`. Where nothing is being recorded and no one else holds `total`, the
/// sum is written into its buffer; the bits are the same.
void accumulate(Tensor& total, const Tensor& d);

/// The largest number of terms K for which a product may be added to what is in memory already, with the bits of a
/// product followed by a sum (docs/numerics.md, rule 2).
inline constexpr std::int64_t kMostTermsAdded = 256;

/// Adds a product in place: total [M, N] += a [M, K] . b [K, N], floats of one dtype, K at most kMostTermsAdded.
/// `total` must be contiguous and have no other reader.
void add_product(const Tensor& a, const Tensor& b, Tensor& total);

}  // namespace ferrite::detail
