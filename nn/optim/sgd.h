#pragma once
/// The optimiser SGD: stochastic gradient descent, with momentum and weight decay.
#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Sgd; each group of parameters has its own. The class gives the formula.
struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;          ///< factor of the previous v; 0: there is no v
  double dampening = 0;         ///< v takes (1 - dampening) g, from the second update on
  bool nesterov = false;        ///< requires momentum and no dampening
  double weight_decay = 0;      ///< added to the gradient as weight_decay w
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Stochastic gradient descent, as torch.optim.SGD:
///
///   g += weight_decay w;  v = momentum v + (1 - dampening) g (v = g at first)
///   w -= rate (nesterov ? g + momentum v : v)
class Sgd final : public RuleOptimizer {
 public:
  /// Throws ValueError for options below 0, a dampening above 1, nesterov without momentum or with a dampening.
  explicit Sgd(std::vector<Parameter> parameters, const SgdOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const SgdOptions& options = {});

  std::string torch_name() const override { return "SGD"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    SgdOptions options;
    State steps{};  ///< only with dampening, which skips the first update
  };
  void prepare(const SgdOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
