#pragma once
/// One step of training: forward, loss, backward, clipping, update; and one of validation. Functions of batches run as
/// written, or as a compiled program where that pays.
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ferrite/compile/compile.h"
#include "ferrite/tensor/anomaly.h"
#include "ferrite/train/fit.h"
#include "ferrite/train/loss.h"

// ---- functions of batches ------------------------------------------------------------------------------

namespace ferrite::train::detail {

/// f(batch), whose tensors all depend on the batch and on variables. `Compile::automatic` compiles what comes again.
class BatchFunction {
 public:
  using F = std::function<Tensors(const Batch&)>;
  BatchFunction(F f, Compile mode) : f_(std::move(f)), mode_(mode) {}
  BatchFunction(BatchFunction&&) = delete;

  Tensors operator()(const Batch& batch);
  /// Whether a call with such a batch would run a program, which changes nothing when it throws.
  bool runs_compiled(const Batch& batch) const;
  /// The function itself.
  Tensors eager(const Batch& batch) const { return f_(batch); }
  /// From now on a program is compared with the function before it runs next: numbers that the function captures may
  /// have changed.
  void verify_next() { verified_.clear(); }

 private:
  using Program = Compiled<std::function<Tensors(const Tensors&)>>;
  /// Which fields have lengths: another list of tensors, another program.
  Program& program(const Batch& batch);
  bool compiles(const std::string& types);

  F f_;
  Compile mode_;
  std::map<std::vector<bool>, std::unique_ptr<Program>> programs_;
  std::set<std::string> met_, compiled_, verified_;
};

// ---- steps ---------------------------------------------------------------------------------------------

/// What `fit` was given to train, in one form.
struct Model {
  const nn::Module& module;
  Forward forward{};   ///< empty for a step of the user's own
  Forward evaluate{};  ///< empty: there is no validation
  std::function<StepOutput(const Batch&)> own_step{};
  std::vector<nn::Optimizer*> optimizers{};
  std::function<double(const Batch&)> weight{};  ///< of its loss in means over batches; empty: what a step says
  bool pure = false;                             ///< whether `forward` depends on the batch and on variables alone
};

/// What was not finite, with all variables as they were before the step.
class NotFinite : public AnomalyError {
 public:
  using AnomalyError::AnomalyError;
};

/// Steps of a model: eager or compiled, gradients of several batches gathered for one update.
class Steps {
 public:
  Steps(const Model& model, const FitOptions& options);
  /// From now on steps are those of several processes.
  void join(ParallelRun* run) { parallel_ = run; }

  struct Result {
    double loss = 0;
    double weight = 0;    ///< how much the loss counts in means over batches
    Tensor prediction{};  ///< undefined where there are no metrics
    bool updated = true;
  };
  /// Trains on a batch; `last` ends the gathering of gradients. Throws NotFinite before anything has changed.
  Result train(const Batch& batch, bool last);
  Result evaluate(const Batch& batch);
  /// Whether gradients wait for more batches.
  bool gathering() const { return gathered_ > 0; }
  void begin_epoch(std::int64_t epoch);

 private:
  /// What a batch gives.
  struct Computed {
    Tensors packed;     ///< loss, count and prediction
    Tensors gradients;  ///< by parameter
  };
  Computed computed(const Batch& batch) const;
  Computed computed_by_all(const Batch& batch) const;
  Tensors step(const Batch& batch) const;
  Tensors gradients(const Batch& batch);
  void alone(const Batch& batch) const;
  Tensor whole(const Tensors& packed, const Batch& batch) const;
  Tensors packed(StepOutput out) const;
  double weight(const Tensors& packed, const Batch& batch) const;
  void gather(const Tensors& gradients, double weight);
  void update();
  void apply(const Tensors& gradients) const;
  Tensors clipped(Tensors gradients) const;
  Tensors guarded(BatchFunction& f, const Batch& batch);
  std::string explanation(BatchFunction& f, const Batch& batch, const std::string& found) const;

  const Model& model_;
  const FitOptions& options_;
  ParallelRun* parallel_ = nullptr;
  std::vector<Parameter> parameters_;
  BatchFunction train_, evaluate_;
  std::vector<Tensor> sums_;
  double first_size_ = 0, weight_ = 0;
  std::int64_t gathered_ = 0;
};

// ---- means ---------------------------------------------------------------------------------------------

/// sum / count, rank 0, of the sum's dtype. Throws ShapeError unless both hold one element.
Tensor mean_of(const Tensor& sum, const Tensor& count);

}  // namespace ferrite::train::detail
