#pragma once
/// The NAdam optimiser: Adam with Nesterov momentum.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of NAdam; each group of parameters has its own. The class gives the formula.
struct NAdamOptions {
  double learning_rate = 2e-3;
  double beta1 = 0.9;                   ///< decay of m, the mean of gradients, in [0, 1)
  double beta2 = 0.999;                 ///< decay of v, the mean of squared gradients, in [0, 1)
  double epsilon = 1e-8;                ///< added to the root of v, the divisor
  double weight_decay = 0;              ///< g += weight_decay w, unless decoupled_weight_decay
  double momentum_decay = 4e-3;         ///< speed of the approach of mu_t to beta1
  bool decoupled_weight_decay = false;  ///< w -= rate weight_decay w, instead of g += weight_decay w
  bool maximize = false;                ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;          ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// NAdam (Dozat 2016, "Incorporating Nesterov Momentum into Adam"), as torch.optim.NAdam:
///
///   mu_t = beta1 (1 - 0.96^(t momentum_decay) / 2);  p_t = mu_1 ... mu_t
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  d = sqrt(v / (1 - beta2^t)) + epsilon
///   w -= rate (1 - mu_t) / (1 - p_t) g / d + rate mu_(t+1) / (1 - p_(t+1)) m / d
class NAdam final : public RuleOptimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit NAdam(std::vector<Parameter> parameters, const NAdamOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const NAdamOptions& options = {});

  std::string torch_name() const override { return "NAdam"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    NAdamOptions options;
    State steps, product;  ///< t and p_t of the formula
  };
  void prepare(const NAdamOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
