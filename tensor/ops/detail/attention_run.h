#pragma once
/// Attention that nothing records: head by head, some queries at a time, so that scores stay in the cache.
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// softmax(scale q k^T) v without a mask: q [..., L, E], k [..., S, E], v [..., S, N], dense or strided. With `causal`
/// query i sees the keys 0..i, and no others are computed; with `grouped` the heads on the third axis from the end
/// share those of k and v. The bits of the parts, where hidden values are finite: what is hidden adds zeros to the ends
/// of the same sums. Undefined for operands that it does not take.
Tensor run_attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, bool causal, bool grouped);

}  // namespace ferrite::detail
