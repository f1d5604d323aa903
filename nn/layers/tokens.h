#pragma once
/// Layers for tokens and their positions: bags of embeddings, positional encodings.
#include <optional>

#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

/// The way in which EmbeddingBag joins the embeddings of a bag of tokens into one vector.
enum class BagMode : std::uint8_t { sum, mean, max };

/// Options of EmbeddingBag: size of the table, mode and padding.
struct EmbeddingBagOptions {
  std::int64_t vocabulary = 0;                ///< V, number of different tokens; the builder infers it
  std::int64_t features = 0;                  ///< D, width of an embedding
  BagMode mode = BagMode::mean;               ///< how embeddings are joined
  std::optional<std::int64_t> padding_idx{};  ///< a token that is ignored; negative values count from the end
  bool include_last_offset = false;           ///< whether offsets of `bags` have a last element, the number of tokens
  static constexpr auto fields =
      attr_list(attr("vocabulary", &EmbeddingBagOptions::vocabulary), attr("features", &EmbeddingBagOptions::features),
                attr("padding_idx", &EmbeddingBagOptions::padding_idx),
                attr("include_last_offset", &EmbeddingBagOptions::include_last_offset));
};

/// Joins the embeddings of bags of tokens by sum, mean or maximum, as torch.nn.EmbeddingBag. weight [V, D] starts as
/// N(0, 1), with 0 in the row of padding_idx; padding is ignored and gets no gradient. An empty bag gives 0. Equal
/// elements of a maximum share the gradient evenly; for a repeated token that is its whole gradient.
///
/// As a layer: tokens i64 or i32 [B, N] -> [B, D], from the first `context.lengths` tokens of each row. Throws
/// ShapeError for another rank and a token outside [0, V), DtypeError for other dtypes.
class EmbeddingBag final : public LayerOf<EmbeddingBag, EmbeddingBagOptions> {
 public:
  static constexpr auto name = "embedding_bag";
  /// Throws ValueError for sizes below 1 and a padding_idx outside [-V, V).
  explicit EmbeddingBag(const EmbeddingBagOptions& options, const Init& init = {});

  std::string summary() const override;
  Tensor forward(const Tensor& tokens, const Context& context) const override;
  bool reads_lengths() const override { return true; }
  /// Returns the weighted sum of each bag: tokens and weights [B, N], the weights of the table's dtype. Throws
  /// ValueError for a mode other than sum.
  Tensor weighted(const Tensor& tokens, const Tensor& weights) const;
  /// Joins bags that follow each other in one list: tokens [M], where bag b has the tokens from offsets[b] to
  /// offsets[b + 1], and the last bag all the rest. offsets i64 [B] start with 0 and do not decrease (ShapeError, as
  /// part of the program); with include_last_offset they are [B + 1]. weights [M] or undefined.
  Tensor bags(const Tensor& tokens, const Tensor& offsets, const Tensor& weights = {}) const;

  Parameter weight;

 private:
  struct Rows {
    Tensor values;   ///< [..., D], multiplied by their weights
    Tensor counted;  ///< bool [..., 1]: false for padding; undefined: all true
  };
  Rows rows(const Tensor& tokens, const Tensor& weights) const;
};

/// Options of SinusoidalPositions: features and base.
struct SinusoidalPositionsOptions {
  std::int64_t features = 0;  ///< the builder infers it
  double base = 10000;        ///< feature pair i turns by base^(-2 i / D) per step
  static constexpr auto fields = attr_list(attr("features", &SinusoidalPositionsOptions::features),
                                           attr("base", &SinusoidalPositionsOptions::base));
};

/// Adds the absolute positions of arXiv 1706.03762, x + p: p[t, 2 i] = sin(t / base^(2 i / D)), p[t, 2 i + 1] the
/// cosine of the same. Sines and cosines are computed in f64. x [B, T, D] -> [B, T, D]. A step's position counts from
/// the beginning, or from the last step at which `context.reset_mask` is set; a carry and a stream continue the count.
/// Throws ShapeError for another shape.
class SinusoidalPositions final : public LayerOf<SinusoidalPositions, SinusoidalPositionsOptions> {
 public:
  static constexpr auto name = "sinusoidal_positions";
  /// `init` only gives the dtype of streams. Throws ValueError for no features and a base that is not positive and
  /// finite.
  explicit SinusoidalPositions(const SinusoidalPositionsOptions& options, const Init& init = {});
  std::unique_ptr<SinusoidalPositions> another(const Init& init) const;

  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, dtype_}; }
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;

 private:
  Tensor added(const Tensor& x, const Tensor& positions) const;

  Dtype dtype_;
};

/// Options of LearnedPositions: features and number of positions.
struct LearnedPositionsOptions {
  std::int64_t features = 0;  ///< the builder infers it
  std::int64_t capacity = 0;  ///< number of steps that have a learned row, the longest sequence
  static constexpr auto fields = attr_list(attr("features", &LearnedPositionsOptions::features),
                                           attr("capacity", &LearnedPositionsOptions::capacity));
};

/// Adds a learned row to each step, x + weight[t] for step t, which counts as in `SinusoidalPositions`. x [B, T, D] ->
/// [B, T, D]. weight [capacity, D] starts as N(0, 0.02^2). Throws ShapeError for another shape and a step beyond the
/// capacity.
class LearnedPositions final : public LayerOf<LearnedPositions, LearnedPositionsOptions> {
 public:
  static constexpr auto name = "learned_positions";
  /// Throws ValueError for sizes below 1.
  explicit LearnedPositions(const LearnedPositionsOptions& options, const Init& init = {});

  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, weight.dtype()}; }
  std::vector<StepState> states(const StepRows& in) const override;
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter weight;

 private:
  Tensor added(const Tensor& x, const Tensor& positions) const;
};

extern template class LayerOf<EmbeddingBag, EmbeddingBagOptions>;
extern template class LayerOf<SinusoidalPositions, SinusoidalPositionsOptions>;
extern template class LayerOf<LearnedPositions, LearnedPositionsOptions>;

}  // namespace ferrite::nn
