#pragma once
/// Attention and its gradient head by head, some queries at a time, so that scores stay in the cache.
#include "ferrite/tensor/ops/detail/attention_parts.h"

namespace ferrite::detail {

/// y from q, k and v of any layout, and a mask that broadcasts to the scores or is undefined. With `causal` no key is
/// read that is hidden from all queries of a block. The bits of the composition, where hidden values are finite: what
/// is hidden adds zeros to the ends of the same sums. Where they are not, the bits with zeros in their place.
void run_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a,
                   Tensor& y);

struct AttentionGradient {
  const Tensor &dy, &y, &q, &k, &v;  ///< of any layout
  const Tensor& mask;                ///< may be undefined
  Tensor &dq, &dk, &dv;
};
/// The gradients, from weights that are computed again: dS = P (dP - dy . y) for dP = dy v^T; then dq = scale dS k,
/// dk = dS^T (scale q), dv = P^T dy, summed over queries in ascending blocks.
void run_attention_grad(const AttentionGradient& g, const AttentionAttrs& a);

}  // namespace ferrite::detail
