#pragma once
/// The Adafactor optimiser, which keeps second moments of matrices by rows and columns.
#include <optional>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

/// Options of Adafactor; each group of parameters has its own. b, r, v, rms and pace are those of Adafactor's formula.
struct AdafactorOptions {
  double learning_rate = 1e-2;       ///< rate of the formula, which uses min(rate, 1 / sqrt(t))
  double beta2_decay = -0.8;         ///< exponent of t in b, the share of the newest squares; at most 0
  std::optional<double> epsilon1{};  ///< lower bound of sqrt(v) and of the mean of r; unset: epsilon of the dtype
  double epsilon2 = 1e-3;            ///< lower bound of rms(w), the root mean square of the weights, in pace
  double clipping_threshold = 1;     ///< largest rms of u, the update before pace; at least 1: PyTorch's d
  double weight_decay = 0;           ///< w -= rate weight_decay w
  bool maximize = false;             ///< updates by -g instead of the gradient g
  bool skip_nonfinite = false;       ///< skips steps whose gradients hold NaN or infinity: see Optimizer::step
};

/// Adafactor (Shazeer and Stern 2018, arXiv 1804.04235), as torch.optim.Adafactor:
///
///   b = t^beta2_decay;  pace = max(epsilon2, rms(w)) min(rate, 1 / sqrt(t))
///   rank >= 2: r += b (mean of g^2 over the last axis - r);  c += b (mean over the last but one - c);
///              v = r c / max(mean of r, epsilon1);   otherwise: v += b (g^2 - v)
///   u = g / sqrt(max(v, epsilon1^2));  w -= pace u / max(1, rms(u) / clipping_threshold)
///
/// The states have PyTorch's names: row_var and col_var, or variance. An update is recorded as several operations, not
/// as one `rule_update`.
class Adafactor final : public Optimizer {
 public:
  /// Throws ValueError for a beta2_decay above 0, a clipping_threshold below 1 or other options below 0.
  explicit Adafactor(std::vector<Parameter> parameters, const AdafactorOptions& options = {});
  /// Adds a group of parameters with its own options; `skip_nonfinite` is the first group's. Throws as the constructor.
  void add_group(std::vector<Parameter> parameters, const AdafactorOptions& options = {});

  std::string torch_name() const override { return "Adafactor"; }
  std::vector<NamedOption> options(std::size_t group) const override;

 private:
  struct Group {
    AdafactorOptions options;
    std::vector<State> rows, columns, variances;
    State steps;
    Tensor share{}, pace{};  ///< b and min(rate, 1 / sqrt(t)) of the current update
  };
  void prepare(const AdafactorOptions& options);
  void begin_group(std::size_t group) override;
  void update(std::size_t i, const Tensor& grad, const Tensor& rate) override;

  std::vector<Group> groups_;
};

}  // namespace ferrite::nn
