#pragma once
/// Layers without a recurrence: linear, embedding, normalisation, dropout, activations and others.
#include <optional>

#include "ferrite/nn/layer_of.h"

namespace ferrite::nn {

/// Options of Linear: sizes and whether there is a bias, named as in torch.nn.Linear.
struct LinearOptions {
  std::int64_t in_features = 1;
  std::int64_t out_features = 1;
  bool bias = true;
  static constexpr auto fields =
      attr_list(attr("in_features", &LinearOptions::in_features), attr("out_features", &LinearOptions::out_features),
                attr("bias", &LinearOptions::bias));
};

/// A linear map y = x W + b, as torch.nn.Linear: x [..., D] -> [..., N]. weight [D, N] (in files [N, D]) and bias [N]
/// start as U(-1/sqrt(D), 1/sqrt(D)). Throws ShapeError for another last extent.
class Linear final : public LayerOf<Linear, LinearOptions> {
 public:
  static constexpr auto name = "linear";
  /// Throws ValueError for sizes below 1.
  explicit Linear(const LinearOptions& options, const Init& init = {});
  Linear(std::int64_t in_features, std::int64_t out_features, const Init& init = {}, bool with_bias = true)
      : Linear(LinearOptions{in_features, out_features, with_bias}, init) {}

  std::int64_t in_features() const { return options().in_features; }
  std::int64_t out_features() const { return options().out_features; }
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {in_features(), weight.dtype()}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter weight;
  Parameter bias;  ///< empty if there is none
};

/// Options of Embedding: size of the table and padding.
struct EmbeddingOptions {
  std::int64_t vocabulary = 1;                ///< V, number of different tokens
  std::int64_t features = 1;                  ///< D, width of a row
  std::optional<std::int64_t> padding_idx{};  ///< token whose row starts as 0 and is not trained; < 0: from the end
  static constexpr auto fields =
      attr_list(attr("vocabulary", &EmbeddingOptions::vocabulary), attr("features", &EmbeddingOptions::features),
                attr("padding_idx", &EmbeddingOptions::padding_idx));
};

/// Looks up rows of a table, as torch.nn.Embedding: tokens i64 [...] -> [..., D]. weight [V, D] starts as N(0, 1); the
/// row of padding_idx starts as 0 and gets no gradient. Throws ShapeError for a token outside [0, V).
class Embedding final : public LayerOf<Embedding, EmbeddingOptions> {
 public:
  static constexpr auto name = "embedding";
  /// Throws ValueError for sizes below 1 and a padding_idx outside [-V, V).
  explicit Embedding(const EmbeddingOptions& options, const Init& init = {});
  Embedding(std::int64_t vocabulary, std::int64_t features, const Init& init = {})
      : Embedding(EmbeddingOptions{vocabulary, features, {}}, init) {}

  Tensor forward(const Tensor& tokens, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {1, Dtype::i64}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  Parameter weight;
};

/// Options of LayerNorm: extent of the last axis, epsilon and bias.
struct LayerNormOptions {
  std::int64_t features = 1;  ///< D, extent of the last axis
  double epsilon = 1e-5;      ///< added to the variance
  bool bias = true;
  static constexpr auto fields =
      attr_list(attr("features", &LayerNormOptions::features), attr("epsilon", &LayerNormOptions::epsilon),
                attr("bias", &LayerNormOptions::bias));
};

/// Normalises the last axis, (x - mean) / sqrt(var + epsilon) * weight + bias (arXiv 1607.06450). weight [D] starts as
/// 1, bias [D] as 0. Throws ValueError for no features, and an epsilon below 0 or not finite.
class LayerNorm final : public LayerOf<LayerNorm, LayerNormOptions> {
 public:
  static constexpr auto name = "layer_norm";
  explicit LayerNorm(const LayerNormOptions& options, const Init& init = {});
  explicit LayerNorm(std::int64_t features, const Init& init = {}, double epsilon = 1e-5)
      : LayerNorm(LayerNormOptions{features, epsilon, true}, init) {}

  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {options().features, weight.dtype()}; }

  Parameter weight;
  Parameter bias;  ///< empty if there is none
};

/// Options of Dropout: the probability of zeroing an element.
struct DropoutOptions {
  double probability = 0.5;  ///< p, in [0, 1]
  static constexpr auto fields = attr_list(attr("probability", &DropoutOptions::probability));
};

/// Zeroes each element with the given probability while training and scales the others by 1 / (1 - p) (arXiv
/// 1207.0580); otherwise the identity. Draws are a function of the seed, the layer's full name and the number of the
/// call, which is a state variable. Without a seed the layer waits for that of the module that adopts it (see Init);
/// drawing before that throws Error. With p = 1 all elements become 0. Throws ValueError for p outside [0, 1].
class Dropout final : public LayerOf<Dropout, DropoutOptions> {
 public:
  static constexpr auto name = "dropout";
  explicit Dropout(const DropoutOptions& options, const Init& init = {});
  explicit Dropout(double probability, const Init& init = {}) : Dropout(DropoutOptions{probability}, init) {}

  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;

  State calls;  ///< number of calls: i64, rank 0
  State key;    ///< i64 [2]: seed and stream of the draws
};

/// Options of Activation: the function, and the kind of the layer.
struct ActivationOptions {
  using Function = Tensor (*)(const Tensor&);
  std::string name{};           ///< kind of the layer, "relu"; does not choose the function
  Function function = nullptr;  ///< what the layer computes
};

/// A layer that calls a given function of one tensor; `name` is only its kind, and does not look the function up. For
/// an activation of a known name: Activation("relu", activation("relu")).
class Activation final : public LayerOf<Activation, ActivationOptions> {
 public:
  using Function = ActivationOptions::Function;
  /// Throws ValueError for a null function.
  explicit Activation(const ActivationOptions& options);
  Activation(std::string name, Function f) : Activation(ActivationOptions{std::move(name), f}) {}

  std::string kind() const override { return options().name; }
  Tensor forward(const Tensor& x, const Context&) const override { return options().function(x); }
  /// Returns whether the function is activation(name) for the layer's `name`; any other may look at other steps.
  bool causal() const override;
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
};

/// Returns the function of an activation by its name: relu, tanh, sigmoid, gelu, silu, softplus, log_sigmoid, selu,
/// relu6, hardsigmoid, hardswish, mish, softsign, tanhshrink, exp, abs, square, sin, cos, erf, softmax, log_softmax,
/// softmin (the last three over the last axis). Null for an unknown name. Activations with options are separate layers
/// (nn/layers/activations.h).
Activation::Function activation(std::string_view name);
/// Returns all names that `activation` knows.
std::vector<std::string> activation_names();

/// A layer that keeps the last step, or with `context.lengths` each row's last valid one: x [B, T, D] -> [B, D].
class LastStep final : public LayerOf<LastStep> {
 public:
  static constexpr auto name = "last_step";
  LastStep();
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool reads_lengths() const override { return true; }
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
};

/// A layer that gives the mean over the steps, or with `context.lengths` over the valid ones: x [B, T, D] -> [B, D].
class MeanOverTime final : public LayerOf<MeanOverTime> {
 public:
  static constexpr auto name = "mean_over_time";
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool reads_lengths() const override { return true; }
};

/// Options of Unflatten: the axis and what it becomes.
struct UnflattenOptions {
  std::int64_t axis = 1;  ///< the axis that is split
  Shape sizes{};          ///< extents of the new axes; at most one may be -1, which is inferred
  static constexpr auto fields =
      attr_list(attr("axis", &UnflattenOptions::axis), attr("sizes", &UnflattenOptions::sizes));
};
/// Splits one axis into several, as torch.nn.Unflatten: [B, 12] -> [B, 3, 2, 2] with axis 1 and sizes {3, 2, 2}.
class Unflatten final : public LayerOf<Unflatten, UnflattenOptions> {
 public:
  static constexpr auto name = "unflatten";
  /// Throws ValueError for no sizes, sizes below 1 other than -1, and more than one -1.
  explicit Unflatten(const UnflattenOptions& options);
  /// Throws ShapeError if x has no such axis, or the extent of the axis is not the product of the sizes.
  Tensor forward(const Tensor& x, const Context&) const override;
};

/// Joins all axes after the first: [B, ...] -> [B, N].
class Flatten final : public LayerOf<Flatten> {
 public:
  static constexpr auto name = "flatten";
  Tensor forward(const Tensor& x, const Context&) const override { return flatten(x, 1); }
};

extern template class LayerOf<Linear, LinearOptions>;
extern template class LayerOf<Embedding, EmbeddingOptions>;
extern template class LayerOf<LayerNorm, LayerNormOptions>;
extern template class LayerOf<Dropout, DropoutOptions>;
extern template class LayerOf<Activation, ActivationOptions>;
extern template class LayerOf<LastStep>;
extern template class LayerOf<MeanOverTime>;
extern template class LayerOf<Unflatten, UnflattenOptions>;
extern template class LayerOf<Flatten>;

}  // namespace ferrite::nn
