#pragma once
/// Stochastic gradient descent, with momentum and weight decay.
#include <memory>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

namespace detail {
class RuleSteps;
class Sweeps;
}  // namespace detail

struct SgdOptions {
  double learning_rate = 1e-2;
  double momentum = 0;
  double dampening = 0;   ///< of the gradient's share of the momentum, from the second update on
  bool nesterov = false;  ///< needs momentum and no dampening
  double weight_decay = 0;
  bool maximize = false;
  bool skip_nonfinite = false;  ///< Optimizer::step
};

/// Stochastic gradient descent, as torch.optim.SGD:
///
///   g += weight_decay w;  v = momentum v + (1 - dampening) g (v = g at first)
///   w -= rate (nesterov ? g + momentum v : v)
class Sgd final : public Optimizer {
 public:
  /// Throws ValueError for options below 0, a dampening above 1, nesterov without momentum or with a dampening.
  explicit Sgd(std::vector<Parameter> parameters, const SgdOptions& options = {});
  /// More parameters, with options of their own; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const SgdOptions& options = {});
  Sgd(Sgd&&) noexcept;
  ~Sgd() override;

  std::string torch_name() const override { return "SGD"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group;
  void prepare(const SgdOptions& options);
  void begin() override;
  void begin_group(std::size_t group) override;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override;
  void finish() override;

  std::vector<Group> groups_;
  std::unique_ptr<detail::RuleSteps> rules_;
};

}  // namespace ferrite::nn
