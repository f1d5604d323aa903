#pragma once
#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// y = x W + b, as torch.nn.Linear. x [..., D] -> [..., N]. weight [D, N] (in files [N, D]) and bias [N] start as
/// U(-1/sqrt(D), 1/sqrt(D)). Throws ShapeError for another last extent.
class Linear final : public Layer {
 public:
  /// Throws ValueError for sizes below 1.
  Linear(std::int64_t in_features, std::int64_t out_features, const Init& init = {}, bool with_bias = true);

  std::int64_t in_features() const { return weight.shape()[0]; }
  std::int64_t out_features() const { return weight.shape()[1]; }
  std::string kind() const override { return "linear"; }
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {in_features(), weight.dtype()}; }
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  std::unique_ptr<Layer> clone() const override;

  Parameter weight;
  Parameter bias;  ///< empty without one
};

/// Rows of a table: tokens i64 [...] -> [..., D]. weight [V, D] starts as N(0, 1), as torch.nn.Embedding.
/// Throws ShapeError for a token outside [0, V).
class Embedding final : public Layer {
 public:
  Embedding(std::int64_t vocabulary, std::int64_t features, const Init& init = {});

  std::string kind() const override { return "embedding"; }
  Tensor forward(const Tensor& tokens, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {1, Dtype::i64}; }
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  std::unique_ptr<Layer> clone() const override;

  Parameter weight;
};

/// (x - mean) / sqrt(var + epsilon) * weight + bias over the last axis (arXiv 1607.06450). weight [D] starts as 1,
/// bias [D] as 0. Throws ValueError for no features, and an epsilon below 0 or not finite.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(std::int64_t features, const Init& init = {}, double epsilon = 1e-5);

  std::string kind() const override { return "layer_norm"; }
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {weight.shape()[0], weight.dtype()}; }
  std::unique_ptr<Layer> clone() const override;

  Parameter weight, bias;

 private:
  double epsilon_;
};

/// While training, zeroes each element with the given probability and scales the others by 1 / (1 - p)
/// (arXiv 1207.0580); else the identity. Draws are a function of the seed, the layer's full name and the number of
/// the call, which is a state cell. Without a seed they wait for that of the module that adopts it (see Init): drawing
/// before throws Error. With p = 1 all becomes 0. Throws ValueError for p outside [0, 1].
class Dropout final : public Layer {
 public:
  explicit Dropout(double probability, const Init& init = {});

  std::string kind() const override { return "dropout"; }
  Tensor forward(const Tensor& x, const Context&) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  std::unique_ptr<Layer> clone() const override;

  State calls;  ///< i64, rank 0
  State key;    ///< i64 [2]: seed and stream of the draws

 private:
  double probability_;
};

/// A function of one tensor as a layer: "relu", "tanh", "softmax", ...
class Activation final : public Layer {
 public:
  using Function = Tensor (*)(const Tensor&);
  /// Throws ValueError for a null function.
  Activation(std::string name, Function f);

  std::string kind() const override { return name_; }
  Tensor forward(const Tensor& x, const Context&) const override { return f_(x); }
  /// Of the functions that `activation` knows; another one may look at other steps.
  bool causal() const override;
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  std::unique_ptr<Layer> clone() const override { return std::make_unique<Activation>(name_, f_); }

 private:
  std::string name_;
  Function f_;
};

/// An activation by its name: relu, tanh, sigmoid, gelu, silu, softplus, log_sigmoid, exp, abs, square, sin, cos,
/// erf, softmax, log_softmax (the last two over the last axis). Null for an unknown name.
Activation::Function activation(std::string_view name);
/// All names that `activation` knows.
std::vector<std::string> activation_names();

/// x [B, T, D] -> [B, D]: the last step, or with `context.lengths` each sequence's last valid one.
class LastStep final : public Layer {
 public:
  std::string kind() const override { return "last_step"; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return true; }
  StepInput step_input() const override { return {0, Dtype::f32, true}; }
  std::unique_ptr<Step> make_step(const StepRows& in) const override;
  std::unique_ptr<Layer> clone() const override { return std::make_unique<LastStep>(); }
};

/// x [B, T, D] -> [B, D]: the mean of the steps, or with `context.lengths` of the valid ones.
class MeanOverTime final : public Layer {
 public:
  std::string kind() const override { return "mean_over_time"; }
  Tensor forward(const Tensor& x, const Context& context) const override;
  std::unique_ptr<Layer> clone() const override { return std::make_unique<MeanOverTime>(); }
};

/// [B, ...] -> [B, all the rest].
class Flatten final : public Layer {
 public:
  std::string kind() const override { return "flatten"; }
  Tensor forward(const Tensor& x, const Context&) const override { return flatten(x, 1); }
  std::unique_ptr<Layer> clone() const override { return std::make_unique<Flatten>(); }
};

}  // namespace ferrite::nn
