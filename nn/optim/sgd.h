#pragma once
/// Stochastic gradient descent, with momentum and weight decay.
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;
  bool nesterov = false;  ///< needs momentum
  double weight_decay = 0;
  bool skip_nonfinite = false;
};

/// Stochastic gradient descent, as torch.optim.SGD:
///
///   g += weight_decay w;  v = momentum v + g (v = g at first);  w -= rate (nesterov ? g + momentum v : v)
class Sgd final : public Optimizer {
 public:
  /// Throws ValueError for options below 0 or nesterov without momentum.
  explicit Sgd(std::vector<Parameter> parameters, const SgdOptions& options = {});

 private:
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override;

  SgdOptions options_;
  std::vector<State> velocity_;
};

}  // namespace ferrite::nn
