/// The gradient of attention as other operations. The bits are those of tensor/ops/attention.cpp: blocks of 64 queries
/// in ascending order, and dot products in eight sums.
#include "ferrite/exchange/freeze/c_attention.h"

#include <algorithm>

#include "ferrite/tensor/attention_parts.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::exchange::detail {
namespace {

using ferrite::detail::AttentionAttrs;

constexpr std::int64_t kQueries = 64;

/// Returns the dot products of rows [..., N] as [..., 1]: eight sums of every eighth product, joined in pairs.
Tensor dots(const Tensor& a, const Tensor& b) {
  const std::int64_t N = a.shape()[-1], whole = (N + 7) / 8 * 8;
  Shape before = Shape::filled(a.rank(), 0), after = before;
  after[-1] = whole - N;
  const Tensor products = whole == N ? a * b : pad(a * b, before, after);
  Tensor sums = zeros({}, a.dtype());
  for (std::int64_t j = 0; j < whole; j += 8) sums = sums + slice(products, -1, j, j + 8);
  for (std::int64_t half = 4; half > 0; half /= 2) sums = slice(sums, -1, 0, half) + slice(sums, -1, half, 2 * half);
  return sums;
}

/// Returns the head number `share` of each group of heads: [..., G shares, L, C] -> [..., G, L, C].
Tensor of_share(const Tensor& x, std::int64_t share, std::int64_t shares) {
  if (shares == 1) return x;
  Shape split = x.shape();
  split[-3] /= shares;
  split.insert(split.rank() - 2, shares);
  return select(reshape(x, split), split.rank() - 3, share);
}

/// Returns the sum of a^T b over the queries of all heads that share keys, block by block.
Tensor over_queries(const Tensor& a, const Tensor& b, const Shape& shape, std::int64_t shares) {
  Tensor total = zeros(shape, a.dtype());
  const std::int64_t L = a.shape()[-2];
  for (std::int64_t share = 0; share < shares; ++share)
    for (std::int64_t first = 0; first < L; first += kQueries) {
      const std::int64_t end = std::min(L, first + kQueries);
      const auto block = [&](const Tensor& x) { return slice(of_share(x, share, shares), -2, first, end); };
      total = total + matmul(transpose(block(a)), block(b));
    }
  return total;
}

}  // namespace

Tensors attention_gradient(const Graph::Node& n, const Tensors& in) {
  const auto a = n.attrs.as<AttentionAttrs>();
  const Tensor &dy = in[0], &y = in[1], &q = in[2], &k = in[3], &v = in[4];
  const Tensor weights = ferrite::detail::composed_weights(q, k, in.size() > 5 ? in[5] : Tensor(), a);
  const Tensor of_weights = ferrite::detail::product_by_head(dy, transpose(v), a.grouped);
  const Tensor of_scores = weights * (of_weights - dots(dy, y));
  const std::int64_t shares = a.grouped ? q.shape()[-3] / k.shape()[-3] : 1;
  return {ferrite::detail::product_by_head(of_scores, k, a.grouped) * a.scale,
          over_queries(of_scores, q * a.scale, k.shape(), shares), over_queries(weights, dy, v.shape(), shares)};
}

}  // namespace ferrite::exchange::detail
