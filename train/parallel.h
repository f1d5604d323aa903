#pragma once
/// The interface through which `fit` trains one model on several processes. Programs use an implementation: mpi::ranks
/// (ferrite/distributed/ranks.h).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ferrite/train/checkpoint.h"
#include "ferrite/train/loss.h"

namespace ferrite::train {

/// One training by several processes, all of which make the same calls in the same order with the same batches.
/// `gradients`, `evaluate` and `update` may run inside a compiled function; all other calls read values.
class ParallelRun {
 public:
  virtual ~ParallelRun() = default;

  /// The joined result of a batch of which each process computes a part.
  struct Joined {
    Tensor loss;          ///< mean loss of the whole batch, rank 0
    Tensor count;         ///< number of losses in the whole batch, rank 0, f64
    Tensor prediction{};  ///< predictions of this process's rows; undefined if the forward pass returns none
    Tensors gradients{};  ///< gradients of the mean, one per parameter; undefined if the loss does not depend on it
  };
  /// Computes loss and gradients of a batch. Calls `forward` with parts of the batch; it must return sums
  /// (StepOutput::count), or ValueError is thrown.
  virtual Joined gradients(const Batch& batch, const Forward& forward) = 0;
  /// Computes the loss of a batch as `gradients` does, but no gradients.
  virtual Joined evaluate(const Batch& batch, const Forward& forward) = 0;
  /// Updates the parameters with the gradients of the whole batch.
  virtual void update(const Tensors& gradients) = 0;

  /// Gathers the predictions of all rows, on every process, from those of each process's rows. `rows` is the number of
  /// rows of the whole batch.
  virtual Tensor whole(const Tensor& prediction, std::int64_t rows) = 0;
  /// Returns whether this process is the one that writes files and shows progress.
  virtual bool is_main() const = 0;
  /// Returns whether `yes` is true on any process.
  virtual bool any(bool yes) = 0;
  /// Returns the text of the first process whose text is not empty; empty if there is none.
  virtual std::string first_text(const std::string& own) = 0;
  /// Checks that all processes pass the same number. Otherwise throws ValueError on all: "fit: the ranks <differ>".
  virtual void check_equal(std::uint64_t number, const std::string& differ) = 0;

  /// Saves a checkpoint, which the main process writes. Throws IoError on all processes when it cannot.
  virtual void save(const std::filesystem::path& path, const TrainingParts& parts, const Checkpoint& checkpoint) = 0;
  /// Restores all processes from a checkpoint, which the main process reads; returns nullopt if there is no such file.
  /// Throws IoError on all processes when it does not fit; nothing has changed then.
  virtual std::optional<Checkpoint> load(const std::filesystem::path& path, const TrainingParts& parts) = 0;
  /// Ends a training that succeeded, and makes the optimiser whole on every process.
  virtual void end() = 0;
  /// Leaves the training because of an exception that the others may not have, so that they do not wait.
  virtual void abandon() noexcept = 0;
};

/// A set of processes that can train together, for FitOptions::parallel.
class Parallel {
 public:
  virtual ~Parallel() = default;
  /// Begins a training, or an evaluation if `optimizer` is null. Every process gets the main process's parameters,
  /// buffers, states and optimiser.
  virtual std::unique_ptr<ParallelRun> begin(const nn::Module& model, nn::Optimizer* optimizer) const = 0;
};

}  // namespace ferrite::train
