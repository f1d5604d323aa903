#pragma once
/// The Lion optimiser: updates by the sign of an interpolated momentum.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Lion; each group of parameters has its own. The class gives the formula.
struct LionOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;           ///< share of m, against g, in the update, in [0, 1)
  double beta2 = 0.99;          ///< decay of m, the mean of gradients, in [0, 1)
  double weight_decay = 0;      ///< w -= rate weight_decay w
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Lion (Chen et al. 2023, arXiv 2302.06675, algorithm 2):
///
///   w -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay w);  m = beta2 m + (1 - beta2) g
///
/// sign(0) = 0. The paper uses a learning rate 3 to 10 times smaller than AdamW's, and a decay larger by the same
/// factor.
class Lion final : public RuleOptimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit Lion(std::vector<Parameter> parameters, const LionOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const LionOptions& options = {});

  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    LionOptions options;
  };
  void prepare(const LionOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
