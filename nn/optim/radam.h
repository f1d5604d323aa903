#pragma once
/// The RAdam optimiser: Adam whose adaptive rate is rectified while its variance is large.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of RAdam; each group of parameters has its own. The class gives the formula.
struct RAdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;                   ///< decay of m, the mean of gradients, in [0, 1)
  double beta2 = 0.999;                 ///< decay of v, the mean of squared gradients, in [0, 1)
  double epsilon = 1e-8;                ///< added to the root of v, the divisor
  double weight_decay = 0;              ///< g += weight_decay w, unless decoupled_weight_decay
  bool decoupled_weight_decay = false;  ///< w -= rate weight_decay w, instead of g += weight_decay w
  bool maximize = false;                ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;          ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// RAdam (Liu et al. 2020, arXiv 1908.03265), as torch.optim.RAdam:
///
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;  b = 1 - beta2^t
///   n = 2 / (1 - beta2) - 1;  l = n - 2 t beta2^t / b
///   l > 5: w -= rate m / (1 - beta1^t) r sqrt(b) / (sqrt(v) + epsilon),
///          r^2 = (l - 4) (l - 2) n / ((n - 4) (n - 2) l);   otherwise: w -= rate m / (1 - beta1^t)
class RAdam final : public RuleOptimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit RAdam(std::vector<Parameter> parameters, const RAdamOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const RAdamOptions& options = {});

  std::string torch_name() const override { return "RAdam"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    RAdamOptions options;
    State steps;
  };
  void prepare(const RAdamOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
