/// What the operations of attention share: the composition that defines them.
#include "ferrite/tensor/ops/detail/attention_parts.h"

#include <algorithm>
#include <cmath>

#include "ferrite/tensor/math.h"
#include "ferrite/tensor/norms.h"

namespace ferrite::detail {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

/// Whether query i sees key j of a causal attention [L, S].
Tensor up_to_own(std::int64_t L, std::int64_t S) { return ge(reshape(arange(L), {L, 1}), arange(S)); }

}  // namespace

Tensor product_by_head(const Tensor& a, const Tensor& b, bool grouped) {
  if (!grouped || a.shape()[-3] == b.shape()[-3]) return matmul(a, b);
  const std::int64_t heads = a.shape()[-3], groups = b.shape()[-3];
  Shape split = a.shape();
  split[-3] = groups;
  split.insert(split.rank() - 2, heads / groups);
  const Tensor y = matmul(reshape(a, split), unsqueeze(b, -3));
  Shape joined = y.shape();
  joined.erase(joined.rank() - 3);
  joined[-3] = heads;
  return reshape(y, joined);
}

Tensor of_all_heads(const Tensor& x, std::int64_t heads) {
  if (x.rank() < 3 || x.shape()[-3] == heads) return x;
  Shape joined = x.shape(), split = joined;
  split.insert(split.rank() - 2, heads / joined[-3]);
  joined[-3] = heads;
  return reshape(expand(unsqueeze(x, -3), split), joined);
}

namespace {

/// Softmax of scores over the keys that are seen. Rows that see nothing are computed as if they saw all, so that no NaN
/// arises whose gradient is not 0, and end as 0. `anything`: hidden scores may be NaN.
Tensor weights_of_scores(Tensor scores, const Tensor& mask, const AttentionAttrs& a, bool anything) {
  const std::int64_t L = scores.shape()[-2], S = scores.shape()[-1];
  if (!mask.defined()) return softmax(a.causal ? where(up_to_own(L, S), scores, kHidden) : scores, -1);
  const bool adds = mask.dtype() != Dtype::boolean;
  Tensor seen = adds ? ne(mask, kHidden) : mask;
  if (a.causal) seen = seen && up_to_own(L, S);
  const Tensor sees = gt(sum(cast(seen, scores.dtype()), {-1}, true), 0);
  if (adds) scores = scores + where(sees, mask, 0);
  if (!adds || a.causal || anything) scores = where(seen || !sees, scores, kHidden);
  return where(sees, softmax(scores, -1), 0);
}

}  // namespace

Tensor composed_weights(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a) {
  return weights_of_scores(product_by_head(q * a.scale, transpose(k), a.grouped), mask, a, false);
}

Tensor finite_part(const Tensor& x) { return where(isfinite(x), x, 0.0); }

Tensor weights_of_hidden(const Tensor& q, const Tensor& k, const Tensor& mask, const AttentionAttrs& a,
                         const Tensor& counts) {
  if (!mask.defined() && !a.causal) return composed_weights(q, k, mask, a);
  const Tensor scores = product_by_head(q * a.scale, transpose(finite_part(k)), a.grouped);
  Tensor spoils = transpose(any(!isfinite(k), {-1}, true));  // [..., 1, S]
  if (a.grouped) spoils = of_all_heads(spoils, q.shape()[-3]);
  if (counts.defined()) spoils = spoils && counts;
  return weights_of_scores(where(spoils, std::numeric_limits<double>::quiet_NaN(), scores), mask, a, true);
}

}  // namespace ferrite::detail
