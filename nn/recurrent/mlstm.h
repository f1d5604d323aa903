#pragma once
/// The mLSTM layer of an xLSTM, with matrix memory.
#include <optional>

#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/nn/recurrent/sequence_layer.h"

namespace ferrite::nn {

/// Options of an MLstm layer: its sizes, heads, biases and dropout, where its weights start, and how it runs.
struct MLstmOptions {
  std::int64_t embedding_dim = 0;       ///< number of features D, in and out; the builder infers it
  std::int64_t num_heads = 4;           ///< number of heads H; each has its own memory matrix
  double proj_factor = 2;               ///< there are I = proj_factor D inner features, rounded up
  std::int64_t round_up_to = 64;        ///< the number whose multiples I is rounded up to
  std::int64_t conv1d_kernel_size = 4;  ///< K, the taps of the causal convolution before queries and keys
  std::int64_t qkv_proj_blocksize = 4;  ///< P: queries, keys and values are products of blocks of P features
  bool bias = false;                    ///< whether products have biases; those of the gates always do
  double dropout = 0;                   ///< probability of dropout of the result, while training
  std::int64_t num_blocks = 1;          ///< blocks in the whole net; the first weights of proj_down shrink with it
  std::int64_t chunk = 64;              ///< steps that are computed at once; 1: step by step
  static constexpr auto fields =
      attr_list(attr("embedding_dim", &MLstmOptions::embedding_dim), attr("num_heads", &MLstmOptions::num_heads),
                attr("proj_factor", &MLstmOptions::proj_factor), attr("round_up_to", &MLstmOptions::round_up_to),
                attr("conv1d_kernel_size", &MLstmOptions::conv1d_kernel_size),
                attr("qkv_proj_blocksize", &MLstmOptions::qkv_proj_blocksize), attr("bias", &MLstmOptions::bias),
                attr("dropout", &MLstmOptions::dropout), attr("num_blocks", &MLstmOptions::num_blocks),
                attr("chunk", &MLstmOptions::chunk));

  /// Returns the number of inner features I.
  std::int64_t inner() const;
};

/// The mLSTM layer of an xLSTM (arXiv 2405.04517), like mLSTMLayer of the Python package xlstm 2.0.6, whose state_dict
/// it loads: x [B, T, D] -> [B, T, D], f32 or f64.
///
///   a, g = x proj_up;  u = silu(conv1d(a))       a causal convolution of each channel by itself
///   q = q_proj(u), k = k_proj(u) / sqrt(d), v = v_proj(a)       for each head, d = I / H wide
///   i = [q, k, v] igate, f = [q, k, v] fgate     one number for each head, from k before its division
///   m' = max(log sigmoid(f) + m, i)
///   C' = exp(log sigmoid(f) + m - m') C + exp(i - m') k^T [v, 1]
///   [c, n] = q C';  h = c / (max(|n|, exp(-m')) + 1e-6)
///   y = ((head_norm(h) + learnable_skip u) silu(g)) proj_down
///
/// m begins at minus infinity, as in the package's parallel form of a whole sequence (its `step` begins with m = 0,
/// which is another function). exp(-m') is bounded by exp(80), beyond which h is 0 in any case. head_norm is a layer
/// norm over each head, epsilon 1e-5, times 1 + outnorm.weight.
///
/// A sequence runs in chunks: masked products within a chunk, C and m from one chunk to the next, so time and memory
/// grow in proportion to T. The chunks have equal lengths of at most `chunk` steps. With chunk = 1 the layer runs step
/// by step, streams have the bits of the whole sequence, and exported programs leave T open; otherwise the values of
/// streams differ from it by rounding (within 1e-5 in f32). Where x is not finite, y is NaN from that step up to the
/// next reset, with a gradient of 0.
///
/// proj_up.weight [D, 2 I], proj_down.weight [I, D] and the gates' weights [3 I, H] are transposed in files;
/// q_proj.weight, k_proj.weight and v_proj.weight [I / P, P, P] are [block, out, in], P = qkv_proj_blocksize;
/// conv1d.conv.weight is [I, 1, K]. They start as in the package: weights as normal numbers of deviation
/// sqrt(2 / (5 D)), those of proj_down of deviation 2 / (num_blocks sqrt(D)); the convolution as in CausalConv1d; the
/// weights of the gates as 0, the bias of fgate from 3 to 6 in even steps, that of igate as normal numbers of deviation
/// 0.1; learnable_skip as 1, everything else as 0.
///
/// The state of a row holds, in this order, the convolution's last inputs [K - 1, I], C with n as its last column
/// [H, d, d + 1], m [H], and 1 once a step has been made [1]; a new state is all zeros. See SequenceLayer for lengths,
/// resets and states.
class MLstm final : public LayerOf<MLstm, MLstmOptions, SequenceLayer> {
 public:
  static constexpr auto name = "mlstm";
  /// Creates the layer. Throws ValueError for sizes below 1, for heads or blocks that do not divide I, and for a
  /// dropout outside [0, 1].
  explicit MLstm(const MLstmOptions& options, const Init& init = {});

  Parameter proj_up_weight, proj_up_bias;  ///< all biases but those of gates and convolution are empty without `bias`
  Parameter q_proj_weight, q_proj_bias, k_proj_weight, k_proj_bias, v_proj_weight, v_proj_bias;
  Parameter conv1d_weight, conv1d_bias;
  Parameter igate_weight, igate_bias, fgate_weight, fgate_bias;
  Parameter outnorm_weight, learnable_skip;
  Parameter proj_down_weight, proj_down_bias;

 protected:
  Tensor run_sequence(const Tensor& x, const SequenceOptions& options, Tensors& states) const override;
  Tensor run_step(const Tensor& x, Tensors& states) const override;

 private:
  struct Inner;
  Tensor run_finite(const Tensor& x, const SequenceOptions& options, const Tensor& resets, Tensors& states) const;
  Inner inner_of(const Tensor& up, const Tensor& convolved) const;
  Tensor result_of(const Tensor& h, const Inner& inner) const;

  std::optional<Dropout> dropout_;
};

extern template class LayerOf<MLstm, MLstmOptions, SequenceLayer>;

}  // namespace ferrite::nn
