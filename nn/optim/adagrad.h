#pragma once
/// The optimiser Adagrad, as in PyTorch.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Adagrad; each group of parameters has its own. The class gives the formula.
struct AdagradOptions {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0;  ///< update t uses rate / (1 + (t - 1) learning_rate_decay)
  double weight_decay = 0;         ///< added to the gradient as weight_decay w
  double initial_accumulator = 0;  ///< s, the sum of squared gradients, before the first update
  double epsilon = 1e-10;          ///< added to sqrt(s), the divisor
  bool maximize = false;           ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;     ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Adagrad (Duchi, Hazan and Singer 2011, JMLR 12), as torch.optim.Adagrad:
///
///   s += g^2 (initial_accumulator at first);  w -= rate / (1 + (t - 1) learning_rate_decay) g / (sqrt(s) + epsilon)
class Adagrad final : public RuleOptimizer {
 public:
  /// Throws ValueError for options below 0.
  explicit Adagrad(std::vector<Parameter> parameters, const AdagradOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const AdagradOptions& options = {});

  std::string torch_name() const override { return "Adagrad"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    AdagradOptions options;
    State steps;
  };
  void prepare(const AdagradOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
