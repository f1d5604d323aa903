#pragma once
/// Layers with one parameter that is computed from others before each call: weight norm and spectral norm.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// A layer with one parameter computed from others, as torch.nn.utils.parametrize: `parametrizations.<parameter>.<...>`
/// replaces `<parameter>`; all other variables keep their names. Gradients flow to what the parameter is computed from.
/// A stream computes it when it is made and at `refresh`. Call the inner layer only through this one.
class Parametrized : public Layer {
 public:
  /// Returns the inner layer.
  const Layer& layer() const& { return *layer_; }
  const Layer& layer() const&& = delete;
  /// Returns the name of the computed parameter in the inner layer.
  const std::string& parameter_name() const& { return name_; }
  std::string parameter_name() const&& { return name_; }
  /// Returns a copy of the inner layer in which the parameter has its current value, as
  /// torch.nn.utils.parametrize.remove_parametrizations.
  std::unique_ptr<Layer> plain() const;

  /// Returns the kind with that of the inner layer, "weight_norm(conv1d)".
  std::string kind() const override;
  std::string summary() const override;
  Tensor forward(const Tensor& x, const Context& context) const override;
  bool causal() const override { return layer_->causal(); }
  bool streams() const override { return layer_->streams(); }
  StepInput step_input() const override { return layer_->step_input(); }
  Pace pace() const override { return layer_->pace(); }
  Tensor lengths_after(const Tensor& lengths) const override { return layer_->lengths_after(lengths); }
  std::vector<StepState> states(const StepRows& in) const override { return layer_->states(in); }
  StepResult step(const Tensor& x, const Tensors& states) const override;
  std::size_t add_steps(StepGraph& graph, std::size_t x) const override;
  bool takes_state() const override { return layer_->takes_state(); }
  bool reads_lengths() const override { return layer_->reads_lengths(); }

 protected:
  /// Computes the parameter from variables that the function holds; `training`: whether the module trains.
  using Compute = std::function<Tensor(bool training)>;

  /// Adopts all of a layer except one parameter. Throws ValueError for a null layer, one that another module has
  /// adopted, and one without such a parameter.
  Parametrized(std::string norm, std::unique_ptr<Layer> layer, std::string parameter);

  void compute_by(Compute compute) { compute_ = std::move(compute); }
  /// Returns the parameter of the inner layer, which the subclass registers the other variables for.
  const Parameter& inner() const { return parameter_; }
  /// Returns the full name of a variable: "parametrizations.weight.original0" for "original0".
  std::string full_name(std::string_view variable) const;
  /// Returns the axis in memory of an axis of the parameter in files, where matrices are transposed. Throws ValueError
  /// if the parameter has no such axis.
  std::int64_t axis_in_memory(std::int64_t axis) const;

 private:
  bool only_chains() const override { return true; }

  std::string norm_, name_;
  std::unique_ptr<Layer> layer_;
  Parameter parameter_;
  Compute compute_;
};

/// Options of the layer `WeightNorm`: which parameter is split, and which of its slices have their own length.
struct WeightNormOptions {
  std::string parameter = "weight";  ///< name of the parameter in the inner layer
  /// The axis, as PyTorch counts the parameter's axes, whose slices each have their own length; unset: one length for
  /// the whole parameter.
  std::optional<std::int64_t> axis = 0;
};

/// A layer whose weight is split into length and direction, w = g v / |v| (Salimans and Kingma 2016, arXiv 1602.07868),
/// as torch.nn.utils.parametrizations.weight_norm. `parametrizations.weight.original0` is g, with extent 1 along all
/// other axes, `.original1` is v. v starts as the layer's weight and g as its lengths, so that w is unchanged. A v of
/// zeros gives NaN, as in PyTorch.
///
///   nn::WeightNorm conv(std::make_unique<nn::CausalConv1d>(options, init));
class WeightNorm final : public Parametrized {
 public:
  /// Throws what Parametrized throws, and ValueError if the parameter has no such axis.
  explicit WeightNorm(std::unique_ptr<Layer> layer, const WeightNormOptions& options = {});

  const WeightNormOptions& options() const& { return options_; }
  WeightNormOptions options() const&& { return options_; }
  std::unique_ptr<Layer> clone() const override;

  Parameter length;     ///< g of the formula
  Parameter direction;  ///< v of the formula

 private:
  WeightNormOptions options_;
};

/// Options of the layer `SpectralNorm`: which parameter is divided, and how its largest singular value is estimated.
struct SpectralNormOptions {
  std::string parameter = "weight";   ///< name of the parameter in the inner layer
  std::int64_t power_iterations = 1;  ///< number of iterations in each call while training
  double epsilon = 1e-12;             ///< lower bound of the lengths by which u and v are divided in an iteration
  /// The axis of the rows of the matrix whose norm is taken, as PyTorch counts the parameter's axes; unset: 1 for a
  /// transposed convolution, else 0.
  std::optional<std::int64_t> axis{};
};

/// A layer whose weight w is divided by its largest singular value as a matrix (Miyato et al. 2018, arXiv 1802.05957),
/// as torch.nn.utils.parametrizations.spectral_norm. sigma = u' w v with the buffers `parametrizations.weight.0._u` and
/// `._v`, which a call improves by power iterations while training and leaves unchanged in evaluation. They start from
/// 15 iterations on normal draws by the seed of `init`, or of the module that adopts this one. A vector is divided by
/// its length. `parametrizations.weight.original` is w. Gradients treat u and v as constants.
class SpectralNorm final : public Parametrized {
 public:
  /// Throws what Parametrized throws, and ValueError if the parameter has no such axis, for fewer than one iteration,
  /// and for an epsilon below 0 or not finite.
  explicit SpectralNorm(std::unique_ptr<Layer> layer, const SpectralNormOptions& options = {}, const Init& init = {});

  const SpectralNormOptions& options() const& { return options_; }
  SpectralNormOptions options() const&& { return options_; }
  std::unique_ptr<Layer> clone() const override;

  Parameter original;  ///< w of the formula
  Buffer u, v;         ///< singular vectors of w as a matrix; empty if the parameter is a vector

 private:
  SpectralNormOptions options_;
};

}  // namespace ferrite::nn
