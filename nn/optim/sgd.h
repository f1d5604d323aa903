#pragma once
/// Stochastic gradient descent, with momentum and weight decay.
#include <memory>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

namespace detail {
class Sweeps;
}

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
  Sgd(Sgd&&) noexcept;
  ~Sgd() override;

 private:
  void begin() override;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override;
  void finish() override;

  SgdOptions options_;
  std::unique_ptr<detail::Sweeps> sweeps_;
};

}  // namespace ferrite::nn
