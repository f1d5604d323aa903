#pragma once
/// The Adamax optimiser: Adam with the infinity norm.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Adamax; each group of parameters has its own. The class gives the formula.
struct AdamaxOptions {
  double learning_rate = 2e-3;
  double beta1 = 0.9;           ///< decay of m, the mean of gradients, in [0, 1)
  double beta2 = 0.999;         ///< decay of u, the largest |g|, in [0, 1)
  double epsilon = 1e-8;        ///< added to |g| in u, the divisor
  double weight_decay = 0;      ///< added to the gradient as weight_decay w
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Adamax (Kingma and Ba 2015, arXiv 1412.6980, algorithm 2), as torch.optim.Adamax:
///
///   m = beta1 m + (1 - beta1) g;  u = max(beta2 u, |g| + epsilon);  w -= rate / (1 - beta1^t) m / u
class Adamax final : public RuleOptimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit Adamax(std::vector<Parameter> parameters, const AdamaxOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const AdamaxOptions& options = {});

  std::string torch_name() const override { return "Adamax"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    AdamaxOptions options;
    State steps;
  };
  void prepare(const AdamaxOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
