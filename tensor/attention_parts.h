#pragma once
/// Shared parts of the operations of attention: their constants and the composition that defines them.
#include <limits>

#include "ferrite/tensor/attributes.h"
#include "ferrite/tensor/tensor.h"

namespace ferrite::detail {

/// Multiplies a [..., H, L, K] . b [..., G, K, N] -> [..., H, L, N], H / G heads of a with each head of b.
Tensor product_by_head(const Tensor& a, const Tensor& b, bool grouped);
/// Repeats heads that are shared: x [..., G, R, C] -> [..., heads, R, C]. x itself where G is `heads`.
Tensor of_all_heads(const Tensor& x, std::int64_t heads);
/// Returns the weights of q and k [..., H, L, S], with a mask that may be undefined, composed of operations.
Tensor composed_weights(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a);
/// Returns the weights of q and k where hidden keys may be anything: no gradient passes through what is not finite, and
/// the weights of a query that sees such a key are NaN, if it `counts` ([..., L, 1]; undefined: all do). (Hidden scores
/// have no cotangent, but 0 times NaN would be NaN.)
Tensor weights_of_hidden(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a,
                         const Tensor& counts = {});
/// Returns x with 0 in place of what is not finite, without a gradient.
Tensor finite_part(const Tensor& x);

/// Returns the number of heads of queries: the extent of the third axis from the end.
inline std::int64_t heads_of(const Shape& s) { return s.rank() > 2 ? s[-3] : 1; }

/// Computes softmax(scale q k^T) v as one operation, `attention`: q [..., L, E], k [..., S, E], v [..., S, N] of equal
/// leading axes, except for grouped heads; with a mask that broadcasts to the scores, or none.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a);
/// Returns whether `attention` takes operands of these shapes, none of them empty.
bool takes_attention(const Shape& q, const Shape& k, const Shape& v, bool grouped);

}  // namespace ferrite::detail
