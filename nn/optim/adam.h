#pragma once
/// Adam and AdamW.
#include <optional>

#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/tensor/attrs.h"

namespace ferrite::nn {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Adam: added to the gradient, 0 unless given. AdamW: taken from the weights, 1e-2 unless given, as in PyTorch.
  std::optional<double> weight_decay{};
  bool skip_nonfinite = false;
};

/// Adam (Kingma and Ba 2015, arXiv 1412.6980, algorithm 1), as torch.optim.Adam:
///
///   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///   w -= rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// Each parameter with its moments is one operation, `adam_update`.
class Adam : public Optimizer {
 public:
  /// Throws ValueError for betas outside [0, 1) or other options below 0.
  explicit Adam(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, false) {}

  Adam(Adam&&) noexcept;
  ~Adam() override;

 protected:
  Adam(std::vector<Parameter> parameters, const AdamOptions& options, bool decoupled);

 private:
  void begin() override;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override;
  void finish() override;

  struct Pending;

  Attrs betas_;      ///< constants of `adam_begin`
  Attrs constants_;  ///< of `adam_update`
  std::vector<State> mean_, square_;
  State steps_;                       ///< f64, rank 0
  Tensor correction1_, correction2_;  ///< 1 - beta^t of the running update
  std::vector<Pending> pending_;      ///< updates in place, ready to run
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101), as torch.optim.AdamW: before the
/// update, w -= rate weight_decay w.
class AdamW final : public Adam {
 public:
  explicit AdamW(std::vector<Parameter> parameters, const AdamOptions& options = {})
      : Adam(std::move(parameters), options, true) {}
};

}  // namespace ferrite::nn
