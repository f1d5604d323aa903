#pragma once
/// Multi-head attention as a layer.
#include <optional>

#include "ferrite/nn/layer_of.h"
#include "ferrite/nn/layers/layers.h"
#include "ferrite/tensor/attention.h"

namespace ferrite::nn {

/// The way in which attention takes positions into account: not at all (none), by rotated queries and keys (arXiv
/// 2104.09864), or by scores that decrease with the distance (arXiv 2108.12409).
enum class Positions : std::uint8_t { none, rotary, alibi };

/// Options of MultiheadAttention: widths, heads, masks and positions, with PyTorch's names where they exist.
struct MultiheadAttentionOptions {
  std::int64_t embed_dim = 0;  ///< E, width of the queries and the result; the builder infers it
  std::int64_t num_heads = 1;  ///< H, number of heads, each E / H wide
  std::int64_t kv_heads = 0;   ///< heads of keys and values, each shared by a group of query heads; 0: num_heads
  std::int64_t kdim = 0;       ///< width of the keys' input; 0: E
  std::int64_t vdim = 0;       ///< width of the values' input; 0: E
  bool bias = true;            ///< whether in_proj and out_proj have biases
  bool add_bias_kv = false;    ///< prepends a learned key and a learned value to those of the steps
  bool add_zero_attn = false;  ///< prepends a key and a value of zeros to those of the steps
  double dropout = 0;          ///< probability of zeroing an attention weight while training
  bool causal = false;         ///< step t sees only the steps 0..t
  Positions positions = Positions::none;
  RotaryOptions rotary{};        ///< options of Positions::rotary
  std::int64_t capacity = 1024;  ///< largest number of steps of a stream; needs `causal`
  static constexpr auto fields = attr_list(
      attr("embed_dim", &MultiheadAttentionOptions::embed_dim),
      attr("num_heads", &MultiheadAttentionOptions::num_heads), attr("kv_heads", &MultiheadAttentionOptions::kv_heads),
      attr("kdim", &MultiheadAttentionOptions::kdim), attr("vdim", &MultiheadAttentionOptions::vdim),
      attr("bias", &MultiheadAttentionOptions::bias), attr("add_bias_kv", &MultiheadAttentionOptions::add_bias_kv),
      attr("add_zero_attn", &MultiheadAttentionOptions::add_zero_attn),
      attr("dropout", &MultiheadAttentionOptions::dropout), attr("causal", &MultiheadAttentionOptions::causal),
      attr("capacity", &MultiheadAttentionOptions::capacity));
};

/// Masks that hide keys, as in torch.nn.MultiheadAttention: true HIDES (in scaled_dot_product_attention true shows).
struct AttentionMasks {
  /// Mask of queries and keys, bool or numbers added to the scores: [L, S], [B H, L, S] or [B, H, L, S], where B, H and
  /// L may be 1.
  Tensor attn_mask{};
  /// Mask of the keys of each row of the batch, for all its queries: [B, S], bool or numbers added to the scores.
  Tensor key_padding_mask{};
};

/// Attention with H heads, as torch.nn.MultiheadAttention with batch_first (arXiv 1706.03762): queries, keys and values
/// are products of the inputs, each head weights the values by softmax(q k^T / sqrt(E / H)), and out_proj joins the
/// heads. A query that sees no key gets zeros before out_proj, as in PyTorch if no weights are requested.
///
/// As a layer it attends to its own input, x [B, T, E] -> [B, T, E]; `attend` takes queries, keys and values. As a
/// layer, `context.lengths` hide padding, which may hold anything, and no step sees another one across a step at which
/// `context.reset_mask` is set. Weights are dropped while training as `Dropout` drops elements.
///
/// in_proj_weight [E, E + 2 K] (in files [E + 2 K, E]) with K = kv_heads E / H holds the weights of queries, keys and
/// values next to each other; if kdim or vdim is not E, there are q_proj_weight [E, E], k_proj_weight [kdim, K] and
/// v_proj_weight [vdim, K] instead. They start as Xavier uniform, in_proj_bias [E + 2 K] and out_proj.bias [E] as 0,
/// out_proj.weight [E, E] as in `Linear`, bias_k and bias_v [1, 1, K] as Xavier normal.
///
/// A stream of a causal layer holds the keys and values of up to `capacity` steps; one more throws CapacityError. Its
/// outputs equal those of the whole sequence bit for bit: a hidden key has weight 0 whatever comes after it.
///
/// Throws ShapeError for other shapes, and if a layer with other widths of keys or values is called with one input;
/// DtypeError for other dtypes.
class MultiheadAttention final : public LayerOf<MultiheadAttention, MultiheadAttentionOptions> {
 public:
  static constexpr auto name = "multihead_attention";
  /// Throws ValueError for sizes below 1, heads that do not divide E, kv_heads that do not divide the heads, rotary
  /// positions with heads of odd width, a dropout outside [0, 1], a capacity below 1.
  explicit MultiheadAttention(const MultiheadAttentionOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  /// Returns the attention of query [B, L, E] to key [B, S, kdim] and value [B, S, vdim], [B, L, E]. A causal layer
  /// hides keys after the query's own position, both counted from 0.
  Tensor attend(const Tensor& query, const Tensor& key, const Tensor& value, const AttentionMasks& masks = {}) const;
  /// Returns the weights of `attend` before dropout, [B, H, L, S]; learned and zero keys come first in S.
  Tensor weights(const Tensor& query, const Tensor& key, const AttentionMasks& masks = {}) const;

  bool causal() const override { return options().causal && in_proj_weight.defined(); }
  bool reads_lengths() const override { return true; }
  StepInput step_input() const override { return {options().embed_dim, out_proj_weight.dtype()}; }
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter in_proj_weight;                               ///< empty if kdim or vdim is not E
  Parameter q_proj_weight, k_proj_weight, v_proj_weight;  ///< empty unless kdim or vdim is not E
  Parameter in_proj_bias;                                 ///< empty if there are no biases
  Parameter bias_k, bias_v;                               ///< empty unless add_bias_kv
  Parameter out_proj_weight, out_proj_bias;               ///< the bias is empty if there are no biases

 private:
  struct Heads {
    Tensor q, k, v;  ///< [B, heads, steps, E / H]
  };
  /// The keys that are shown, and numbers added to their scores; either may be undefined. Both broadcast to
  /// [B, H, L, S].
  struct Mask {
    Tensor shown, added;
  };
  std::int64_t head_width() const { return options().embed_dim / options().num_heads; }
  std::int64_t kv_heads() const { return options().kv_heads ? options().kv_heads : options().num_heads; }
  std::int64_t kv_width() const { return kv_heads() * head_width(); }
  std::int64_t kdim() const { return options().kdim ? options().kdim : options().embed_dim; }
  std::int64_t vdim() const { return options().vdim ? options().vdim : options().embed_dim; }
  std::int64_t first_keys() const { return (options().add_bias_kv ? 1 : 0) + (options().add_zero_attn ? 1 : 0); }

  void check_input(const char* what, const Tensor& x, std::int64_t width) const;
  Tensor projected(const Tensor& x, std::int64_t begin, std::int64_t end, const Parameter& own) const;
  Tensor heads_of(const Tensor& x, std::int64_t heads) const;
  Tensor turned(const Tensor& x, const Tensor& positions) const;
  Tensor with_first(const Tensor& x, const Parameter& bias) const;
  Mask mask_of(const AttentionMasks& masks, std::int64_t B, std::int64_t L, std::int64_t S) const;
  AttentionOptions how(Mask mask, const Tensor& distances, bool causal) const;
  Tensor joined(const Heads& heads, const AttentionOptions& how) const;

  std::optional<Dropout> dropout_;
};

extern template class LayerOf<MultiheadAttention, MultiheadAttentionOptions>;

}  // namespace ferrite::nn
