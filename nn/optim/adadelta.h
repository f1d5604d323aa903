#pragma once
/// The optimiser Adadelta, as in PyTorch.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Adadelta; each group of parameters has its own. The class gives the formula.
struct AdadeltaOptions {
  double learning_rate = 1;
  double rho = 0.9;             ///< decay of the running averages, in [0, 1)
  double epsilon = 1e-6;        ///< added under both roots
  double weight_decay = 0;      ///< added to the gradient as weight_decay w
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Adadelta (Zeiler 2012, arXiv 1212.5701), as torch.optim.Adadelta:
///
///   s = rho s + (1 - rho) g^2;  d = sqrt(a + epsilon) / sqrt(s + epsilon) g;  a = rho a + (1 - rho) d^2;  w -= rate d
class Adadelta final : public RuleOptimizer {
 public:
  /// Throws ValueError for a rho outside [0, 1) or other options below 0.
  explicit Adadelta(std::vector<Parameter> parameters, const AdadeltaOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const AdadeltaOptions& options = {});

  std::string torch_name() const override { return "Adadelta"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    AdadeltaOptions options;
    State steps;  ///< for files: the formula does not need it
  };
  void prepare(const AdadeltaOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
