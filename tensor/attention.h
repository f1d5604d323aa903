#pragma once
/// Attention (softmax of scaled products of queries and keys) and rotary position embeddings. Heads and rows of a batch
/// are leading axes, which broadcast. f32 or f64. All functions are differentiable any number of times. The layer is
/// `nn::MultiheadAttention` (nn/layers/attention.h).
#include <optional>

#include "ferrite/tensor/ops.h"

namespace ferrite {

/// Options of `attention_weights` and `scaled_dot_product_attention`: which keys a query sees, the scale of the scores,
/// and whether heads share keys.
struct AttentionOptions {
  /// Selects the keys that a query sees: bool, true where it does; or numbers of the queries' dtype that are added to
  /// the scores, where -infinity hides a key. It broadcasts to the scores [..., H, L, S]. Undefined: all keys.
  Tensor mask{};
  /// Whether query i sees only the keys 0..i, and of these only what the mask shows. (PyTorch refuses both together.)
  bool causal = false;
  /// Factor of the products q k^T; 1 / sqrt(E) unless given, E the width of a query.
  std::optional<double> scale{};
  /// Whether the queries of H heads share the keys and values of fewer heads, G: head h of the queries reads head h /
  /// (H / G). The axis of heads is the third from the end.
  bool enable_gqa = false;
};

/// Returns softmax(scale q k^T) over the keys that a query sees: q [..., H, L, E], k [..., H, S, E] -> [..., H, L, S].
/// A query that sees no key has weights of 0, and no gradient passes through it. Hidden keys may hold anything. Throws
/// ShapeError for operands of fewer than two axes (three with enable_gqa), for widths E that differ, for heads that do
/// not divide, and for a mask that does not broadcast to the scores; DtypeError for dtypes that differ and for a mask
/// of another dtype; ValueError for a scale that is not finite.
Tensor attention_weights(const Tensor& q, const Tensor& k, const AttentionOptions& options = {});

/// Returns attention_weights(q, k) v, as torch.nn.functional.scaled_dot_product_attention of PyTorch 2.13: v
/// [..., H, S, N] -> [..., H, L, N]. A query that sees no key gives 0. It is one operation, which computes the scores
/// of some queries at a time, recomputes them for the gradient, and stores them only for the gradient of a mask. Hidden
/// keys and values have no influence: NaN or infinity there changes neither results nor derivatives of any order
/// (in PyTorch 0 times NaN is NaN), nor does a query without a cotangent. In exported programs, which multiply by
/// weights of 0, results need finite values there. Sources: arXiv 1706.03762; grouped queries arXiv 2305.13245; blocks
/// arXiv 2205.14135.
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                    const AttentionOptions& options = {});

/// Options of `rotary_embedding`: the angles, and which features form a pair.
struct RotaryOptions {
  double base = 10000;  ///< pair i turns by base^(-2 i / D) radians per position
  /// Whether the pairs are neighbours, (0, 1), (2, 3), ..., as in the paper; false: they join the two halves, (0, D/2),
  /// (1, D/2 + 1), ...
  bool interleaved = false;
};

/// Turns each pair of features by an angle that grows with the position, so that products of queries and keys depend on
/// their distance (arXiv 2104.09864): (a cos - b sin, b cos + a sin). x [..., T, D] with an even D; positions i64 or
/// i32 that broadcast to [..., T]. Angles, sines and cosines are computed in f64. Throws ShapeError for other shapes,
/// DtypeError for other dtypes, ValueError for a base that is not positive and finite.
Tensor rotary_embedding(const Tensor& x, const Tensor& positions, const RotaryOptions& options = {});

}  // namespace ferrite
