#pragma once
/// Layers one of whose parameters is computed from others before each call: weight norm and spectral norm.
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "ferrite/nn/module.h"

namespace ferrite::nn {

/// A layer with one parameter computed from others, as torch.nn.utils.parametrize: `<parameter>` gives way to
/// `parametrizations.<parameter>.<...>`, all other variables keep their names. Gradients flow to what it is computed
/// from; a stream computes it when it is made and at `refresh`. The layer inside is called only through this one.
class Parametrized : public Layer {
 public:
  /// The layer inside.
  const Layer& layer() const& { return *layer_; }
  const Layer& layer() const&& = delete;
  /// The name of the parameter in it.
  const std::string& parameter_name() const& { return name_; }
  std::string parameter_name() const&& { return name_; }
  /// A copy of the layer inside whose parameter has the value that is computed now: torch.nn.utils.parametrize.
  /// remove_parametrizations.
  std::unique_ptr<Layer> plain() const;

  /// "weight_norm(conv1d)".
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
  /// What the parameter is, from variables that it holds; the flag: whether the module trains.
  using Compute = std::function<Tensor(bool training)>;

  /// Adopts all of a layer but one parameter. Throws ValueError for a null layer, one that another module has adopted,
  /// and one without such a parameter.
  Parametrized(std::string norm, std::unique_ptr<Layer> layer, std::string parameter);

  void compute_by(Compute compute) { compute_ = std::move(compute); }
  /// The parameter of the layer inside; the subclass registers it as what the others are computed with.
  const Parameter& inner() const { return parameter_; }
  /// "parametrizations.weight.original0" of "original0".
  std::string full_name(std::string_view variable) const;
  /// The axis in memory of an axis of the parameter in files, where matrices are transposed. Throws ValueError for one
  /// that the parameter has not.
  std::int64_t axis_in_memory(std::int64_t axis) const;

 private:
  bool only_chains() const override { return true; }

  std::string norm_, name_;
  std::unique_ptr<Layer> layer_;
  Parameter parameter_;
  Compute compute_;
};

/// Options of `WeightNorm`.
struct WeightNormOptions {
  std::string parameter = "weight";
  /// Each slice along this axis of the parameter, as PyTorch counts its axes, has a length of its own; none: the whole
  /// has one.
  std::optional<std::int64_t> axis = 0;
};

/// w = g v / |v|: a layer whose weight has its length and its direction apart (Salimans and Kingma 2016, arXiv
/// 1602.07868), torch.nn.utils.parametrizations.weight_norm. `parametrizations.weight.original0` is g, with extent 1
/// along all other axes, `.original1` is v. v starts as the layer's weight and g as its lengths, so that nothing has
/// changed. A v of zeros gives NaN, as in PyTorch.
///
///   nn::WeightNorm conv(std::make_unique<nn::CausalConv1d>(options, init));
class WeightNorm final : public Parametrized {
 public:
  /// Throws what Parametrized throws, and ValueError for an axis that the parameter has not.
  explicit WeightNorm(std::unique_ptr<Layer> layer, const WeightNormOptions& options = {});

  const WeightNormOptions& options() const& { return options_; }
  WeightNormOptions options() const&& { return options_; }
  std::unique_ptr<Layer> clone() const override;

  Parameter length;     ///< g
  Parameter direction;  ///< v

 private:
  WeightNormOptions options_;
};

/// Options of `SpectralNorm`.
struct SpectralNormOptions {
  std::string parameter = "weight";
  std::int64_t power_iterations = 1;  ///< in each call while training
  double epsilon = 1e-12;             ///< the least length that a vector is divided by
  /// The rows of the matrix that the norm is taken of, as PyTorch counts the parameter's axes; none: axis 1 of a
  /// transposed convolution, else 0.
  std::optional<std::int64_t> axis{};
};

/// w / sigma(w), sigma the largest singular value of w as a matrix (Miyato et al. 2018, arXiv 1802.05957): torch.nn.
/// utils.parametrizations.spectral_norm. sigma = u' w v with the buffers `parametrizations.weight.0._u` and `._v`,
/// which a call improves by power iterations while training and leaves alone in evaluation; they start from 15
/// iterations on normal draws by the seed of `init`, or of the module that adopts this one. A vector is divided by its
/// length. `parametrizations.weight.original` is w. Gradients take u and v as constants.
class SpectralNorm final : public Parametrized {
 public:
  /// Throws what Parametrized throws, and ValueError for an axis that the parameter has not, fewer than one iteration
  /// and an epsilon below 0 or not finite.
  explicit SpectralNorm(std::unique_ptr<Layer> layer, const SpectralNormOptions& options = {}, const Init& init = {});

  const SpectralNormOptions& options() const& { return options_; }
  SpectralNormOptions options() const&& { return options_; }
  std::unique_ptr<Layer> clone() const override;

  Parameter original;  ///< w
  Buffer u, v;         ///< empty for a vector

 private:
  SpectralNormOptions options_;
};

}  // namespace ferrite::nn
