#pragma once
/// What the operations of attention share: their constants, the composition that defines them.
#include <limits>

#include "ferrite/tensor/ops/define.h"

namespace ferrite::detail {

struct AttentionAttrs {
  double scale = 1;
  bool causal = false;
  bool grouped = false;
  static constexpr auto fields =
      attr_list(attr("scale", &AttentionAttrs::scale), attr("causal", &AttentionAttrs::causal),
                attr("grouped", &AttentionAttrs::grouped));
};

/// a [..., H, L, K] . b [..., G, K, N] -> [..., H, L, N], H / G heads of a with each of b.
Tensor product_by_head(const Tensor& a, const Tensor& b, bool grouped);
/// x [..., G, R, C], heads that so many share: [..., heads, R, C]. x itself where there are as many.
Tensor of_all_heads(const Tensor& x, std::int64_t heads);
/// The weights of q and k [..., H, L, S], with a mask that may be undefined.
Tensor composed_weights(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a);
/// The same. A key that is hidden may be anything: no gradient passes through what is not finite, and the weights of a
/// query that sees such a key are NaN, if it `counts` ([..., L, 1]; undefined: all do). (Scores that are hidden have no
/// cotangent, but 0 times NaN would be NaN.)
Tensor weights_of_hidden(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a,
                         const Tensor& counts = {});
/// x, what is not finite 0, without a gradient.
Tensor finite_part(const Tensor& x);

/// How many heads queries have: those of the third axis from the end.
inline std::int64_t heads_of(const Shape& s) { return s.rank() > 2 ? s[-3] : 1; }

/// attention(q, k, v) as one operation: softmax(scale q k^T) v, q [..., L, E], k [..., S, E], v [..., S, N] of equal
/// leading axes, but for grouped heads; with a mask that broadcasts to the scores, or none.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, const AttentionAttrs& a);
/// Whether it takes such operands, none of them empty.
bool takes_attention(const Shape& q, const Shape& k, const Shape& v, bool grouped);

}  // namespace ferrite::detail
