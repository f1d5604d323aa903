#pragma once
/// The Adafactor optimiser, which keeps second moments of matrices by rows and columns.
#include <optional>

#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::nn {

/// Options of Adafactor, by group.
struct AdafactorOptions {
  double learning_rate = 1e-2;
  double beta2_decay = -0.8;         ///< exponent of the decay rate, at most 0
  std::optional<double> epsilon1{};  ///< lower bound of second moments: the dtype's epsilon by default
  double epsilon2 = 1e-3;            ///< lower bound of the root mean square of the weights
  double clipping_threshold = 1;     ///< largest root mean square of an update, at least 1: PyTorch's d
  double weight_decay = 0;           ///< w -= rate weight_decay w
  bool maximize = false;
  bool skip_nonfinite = false;  ///< skips steps with NaN or infinity: see Optimizer::step
};

/// Adafactor (Shazeer and Stern 2018, arXiv 1804.04235), as torch.optim.Adafactor:
///
///   b = t^beta2_decay;  pace = max(epsilon2, rms(w)) min(rate, 1 / sqrt(t))
///   rank >= 2: r += b (mean of g^2 over the last axis - r);  c += b (mean over the last but one - c);
///              v = r c / max(mean of r, epsilon1);   otherwise: v += b (g^2 - v)
///   u = g / sqrt(max(v, epsilon1^2));  w -= pace u / max(1, rms(u) / clipping_threshold)
///
/// The states have PyTorch's names: row_var and col_var, or variance. An update consists of separate operations.
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
