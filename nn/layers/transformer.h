#pragma once
/// The layers of a transformer: attention and two products, each with a residual and a norm.
#include <optional>

#include "ferrite/nn/layers/attention.h"

namespace ferrite::nn {

/// Options of TransformerEncoderLayer and TransformerDecoderLayer: widths, norms and self-attention, with PyTorch's
/// names where they exist.
struct TransformerLayerOptions {
  std::int64_t d_model = 0;             ///< D, number of features of a step; the builder infers it
  std::int64_t nhead = 1;               ///< number of heads of every attention
  std::int64_t dim_feedforward = 2048;  ///< number of features between the two products
  double dropout = 0.1;                 ///< probability of all dropouts, that of attention weights too
  Label activation = "relu";            ///< name of f, between the products: any of nn::activation_names()
  double layer_norm_eps = 1e-5;         ///< epsilon of the norms, added to the variance
  bool norm_first = false;              ///< norms before attention and products instead of after the residuals
  bool bias = true;                     ///< whether products and norms have biases
  bool causal = false;        ///< this and the following: options of self_attn, as in MultiheadAttentionOptions
  std::int64_t kv_heads = 0;  ///< heads of self_attn's keys and values; 0: nhead
  Positions positions = Positions::none;  ///< positions in self_attn
  RotaryOptions rotary{};                 ///< options of Positions::rotary
  std::int64_t capacity = 1024;           ///< largest number of steps of a stream; needs `causal`
  static constexpr auto fields = attr_list(
      attr("d_model", &TransformerLayerOptions::d_model), attr("nhead", &TransformerLayerOptions::nhead),
      attr("dim_feedforward", &TransformerLayerOptions::dim_feedforward),
      attr("dropout", &TransformerLayerOptions::dropout), attr("activation", &TransformerLayerOptions::activation),
      attr("layer_norm_eps", &TransformerLayerOptions::layer_norm_eps),
      attr("norm_first", &TransformerLayerOptions::norm_first), attr("bias", &TransformerLayerOptions::bias),
      attr("causal", &TransformerLayerOptions::causal), attr("kv_heads", &TransformerLayerOptions::kv_heads),
      attr("capacity", &TransformerLayerOptions::capacity));
};

/// The part of a transformer that treats each step by itself: linear2(dropout(f(linear1(x)))).
class FeedForward final : public Module {
 public:
  FeedForward(const TransformerLayerOptions& options, const Init& init);
  /// Returns the result for x [..., D], of the same shape.
  Tensor operator()(const Tensor& x) const;
  /// Returns linear1, the activation and linear2, in order: the function without dropout, as streams compute it.
  std::vector<const Layer*> layers() const& { return {&linear1, &activation_, &linear2}; }
  std::vector<const Layer*> layers() const&& = delete;

  Linear linear1, linear2;

 private:
  Activation activation_;
  std::optional<Dropout> dropout_;
};

/// A transformer layer of self-attention and two products, as torch.nn.TransformerEncoderLayer with batch_first (arXiv
/// 1706.03762):
///
///   x = norm1(x + dropout1(self_attn(x)));  y = norm2(x + dropout2(linear2(dropout(f(linear1(x))))))
///
/// or with norm_first (arXiv 2002.04745) x = x + dropout1(self_attn(norm1(x))), and similarly for the products. x
/// [B, T, D] -> [B, T, D]. Parameters are named self_attn.*, linear1.*, linear2.*, norm1.* and norm2.*, and start as in
/// those layers. Padding after `context.lengths` may hold anything; `context.reset_mask` and streams are as in
/// MultiheadAttention. With `causal` it is the layer of a decoder without memory.
class TransformerEncoderLayer final : public LayerOf<TransformerEncoderLayer, TransformerLayerOptions> {
 public:
  static constexpr auto name = "transformer_encoder_layer";
  /// Throws ValueError for sizes below 1, an unknown activation, a dropout outside [0, 1], an epsilon below 0, and what
  /// MultiheadAttention rejects.
  explicit TransformerEncoderLayer(const TransformerLayerOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  /// Returns the layer's result for x [B, T, D], [B, T, D], with self-attention under masks, which hide where true.
  Tensor encode(const Tensor& x, const AttentionMasks& masks) const;

  bool causal() const override { return options().causal; }
  bool reads_lengths() const override { return true; }
  StepInput step_input() const override { return self_attn.step_input(); }
  std::vector<StepState> states(const StepRows& in) const override { return self_attn.states(in); }
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  MultiheadAttention self_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2;

 private:
  template <class Attend>
  Tensor run(const Tensor& x, const Attend& attend) const;

  std::optional<Dropout> dropout1_, dropout2_;
};

/// Masks of TransformerDecoderLayer::decode: of its attention to x, the target, and to the memory.
struct DecoderMasks {
  AttentionMasks target{}, memory{};  ///< of self_attn; of multihead_attn
};

/// A transformer layer with self-attention, attention multihead_attn to a memory [B, S, D], and two products, as
/// torch.nn.TransformerDecoderLayer with batch_first. Each has a residual and norm1, norm2 or norm3 as in
/// TransformerEncoderLayer; the options of positions and heads concern self_attn alone. Call it with `decode`: as a
/// layer with one input it throws ValueError.
class TransformerDecoderLayer final : public LayerOf<TransformerDecoderLayer, TransformerLayerOptions> {
 public:
  static constexpr auto name = "transformer_decoder_layer";
  /// Throws ValueError as TransformerEncoderLayer.
  explicit TransformerDecoderLayer(const TransformerLayerOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  /// Returns the layer's result for x [B, T, D] and memory [B, S, D]: [B, T, D]. Masks hide where they are true; with
  /// `causal` no step of x sees a later one.
  Tensor decode(const Tensor& x, const Tensor& memory, const DecoderMasks& masks = {}) const;

  MultiheadAttention self_attn, multihead_attn;
  FeedForward feed_forward;
  LayerNorm norm1, norm2, norm3;

 private:
  std::optional<Dropout> dropout1_, dropout2_, dropout3_;
};

extern template class LayerOf<TransformerEncoderLayer, TransformerLayerOptions>;
extern template class LayerOf<TransformerDecoderLayer, TransformerLayerOptions>;

}  // namespace ferrite::nn
