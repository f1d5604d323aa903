#pragma once
/// Steps of training (forward, loss, backward, clipping, update) and of validation. Functions of batches run eagerly,
/// or as compiled programs where that pays.
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

/// A function of a batch and of variables, run eagerly or compiled. `Compile::automatic` compiles it for shapes that
/// come again.
class BatchFunction {
 public:
  using F = std::function<Tensors(const Batch&)>;
  BatchFunction(F f, Compile mode) : f_(std::move(f)), mode_(mode) {}
  BatchFunction(BatchFunction&&) = delete;

  Tensors operator()(const Batch& batch);
  /// Returns whether a call with such a batch would run a program, which changes nothing when it throws.
  bool runs_compiled(const Batch& batch) const;
  /// Calls the function itself.
  Tensors eager(const Batch& batch) const { return f_(batch); }
  /// Makes each program be compared with the function before its next run: numbers that the function captures may have
  /// changed.
  void verify_next() { verified_.clear(); }

 private:
  using Program = Compiled<std::function<Tensors(const Tensors&)>>;
  /// Returns the program for batches whose same fields have lengths, and so the same list of tensors.
  Program& program(const Batch& batch);
  bool compiles(const std::string& types);

  F f_;
  Compile mode_;
  std::map<std::vector<bool>, std::unique_ptr<Program>> programs_;
  std::set<std::string> met_, compiled_, verified_;
};

// ---- steps ---------------------------------------------------------------------------------------------

/// The model that `fit` trains, in the form common to its overloads.
struct Model {
  const nn::Module& module;
  Forward forward{};   ///< forward pass; empty for a step of the user's own
  Forward evaluate{};  ///< forward pass of validation; empty: there is no validation
  std::function<StepOutput(const Batch&)> own_step{};
  std::vector<nn::Optimizer*> optimizers{};
  std::function<double(const Batch&)> weight{};  ///< weight of a batch's loss in means; empty: the step's count
  bool pure = false;                             ///< whether `forward` depends on the batch and on variables alone
};

/// Thrown when a loss or gradient is not finite, with all variables as they were before the step.
class NotFinite : public AnomalyError {
 public:
  using AnomalyError::AnomalyError;
};

/// Runs steps of a model, eager or compiled, and gathers the gradients of several batches for one update.
class Steps {
 public:
  Steps(const Model& model, const FitOptions& options);
  /// Makes the following steps those of several processes.
  void join(ParallelRun* run) { parallel_ = run; }

  struct Result {
    double loss = 0;
    double weight = 0;    ///< weight of the loss in means over batches
    Tensor prediction{};  ///< prediction of the whole batch; undefined if there are no metrics
    bool updated = true;
  };
  /// Trains on a batch; after the `last` one the gathered gradients are applied. Throws NotFinite before anything has
  /// changed, except by a step of the user's own.
  Result train(const Batch& batch, bool last);
  Result evaluate(const Batch& batch);
  /// Returns whether gathered gradients wait for more batches.
  bool gathering() const { return gathered_ > 0; }
  void begin_epoch(std::int64_t epoch);

 private:
  /// The results of a batch.
  struct Computed {
    Tensors packed;     ///< loss, count and prediction
    Tensors gradients;  ///< gradient of each parameter
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

/// Returns sum / count, rank 0, in the sum's dtype. Throws ShapeError unless both hold one element.
Tensor mean_of(const Tensor& sum, const Tensor& count);

}  // namespace ferrite::train::detail
