#pragma once
/// The RMSprop optimiser, plain or centered, with momentum and weight decay.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of RmsProp; each group of parameters has its own. The class gives the formula.
struct RmsPropOptions {
  double learning_rate = 1e-2;
  double alpha = 0.99;          ///< decay of the running averages, in [0, 1)
  double epsilon = 1e-8;        ///< added to the root, the divisor
  double weight_decay = 0;      ///< added to the gradient as weight_decay w
  double momentum = 0;          ///< factor of the previous updates; 0: there is no momentum_buffer
  bool centered = false;        ///< divides by the standard deviation of gradients, not the root of their mean square
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// RMSprop (Hinton, lecture 6e of "Neural Networks for Machine Learning"; centered: Graves, arXiv 1308.0850, equations
/// 38 to 45), as torch.optim.RMSprop:
///
///   g += weight_decay w;  square_avg = alpha square_avg + (1 - alpha) g^2
///   centered: grad_avg += (1 - alpha) (g - grad_avg);  d = sqrt(max(square_avg - grad_avg^2, 0)) + epsilon
///   otherwise: d = sqrt(square_avg) + epsilon
///   momentum_buffer = momentum momentum_buffer + g / d;  w -= rate momentum_buffer   (without momentum: rate g / d)
///
/// The difference under the root is negative only by rounding, where PyTorch gives NaN. Its states have PyTorch's
/// names; `grad_avg` exists only with `centered`, and `momentum_buffer` only with a momentum.
class RmsProp final : public RuleOptimizer {
 public:
  /// Throws ValueError for an alpha outside [0, 1) or other options below 0.
  explicit RmsProp(std::vector<Parameter> parameters, const RmsPropOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const RmsPropOptions& options = {});

  std::string torch_name() const override { return "RMSprop"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    RmsPropOptions options;
  };
  void prepare(const RmsPropOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
