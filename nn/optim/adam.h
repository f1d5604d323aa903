#pragma once
/// The optimisers Adam and AdamW.
#include <optional>

#include "ferrite/nn/optim/rule_optimizer.h"

namespace ferrite::nn {

/// Options of Adam and AdamW; each group of parameters has its own. The classes give the formula.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;     ///< decay of m, the mean of gradients, in [0, 1)
  double beta2 = 0.999;   ///< decay of v, the mean of squared gradients, in [0, 1)
  double epsilon = 1e-8;  ///< added to the root of v, the divisor
  /// Weight decay. Adam adds it to the gradient, by default 0; AdamW subtracts it from the weights, by default 1e-2.
  std::optional<double> weight_decay{};
  bool amsgrad = false;         ///< divides by the largest v so far (Reddi et al. 2018, arXiv 1904.09237)
  bool maximize = false;        ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;  ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Adam (Kingma and Ba 2015, arXiv 1412.6980, algorithm 1), as torch.optim.Adam:
///
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   w -= rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
class Adam : public RuleOptimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit Adam(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, false) {}
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const AdamOptions& options = {});

  std::string torch_name() const override { return decoupled_ ? "AdamW" : "Adam"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 protected:
  Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled);

 private:
  struct Group {
    AdamOptions options;
    Attrs betas;  ///< constants of `adam_begin`, the first operation of an update
    State steps;  ///< number of updates, i64 [parameters]
  };
  void prepare(const AdamOptions& options);
  std::array<Tensor, 6> numbers(std::size_t group) override;

  bool decoupled_;
  std::vector<Group> groups_;
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101), as torch.optim.AdamW: before the
/// update, w -= rate weight_decay w.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, true) {}
};

}  // namespace ferrite::nn
