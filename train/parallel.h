#pragma once
/// What `fit` asks of processes that train one model together. Programs take one that there is: mpi::ranks
/// (ferrite/distributed/ranks.h).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "ferrite/train/checkpoint.h"
#include "ferrite/train/loss.h"

namespace ferrite::train {

/// One training by several processes, all of which make the same calls in the same order with the same batches. What is
/// computed on a batch may run inside a compiled function; all other calls read values.
class ParallelRun {
 public:
  virtual ~ParallelRun() = default;

  /// Of a batch that each process computes a part of.
  struct Joined {
    Tensor loss;          ///< the mean of the whole batch, rank 0
    Tensor count;         ///< of how many losses, rank 0, f64
    Tensor prediction{};  ///< of the rows of this process; undefined where the forward pass gives none
    Tensors gradients{};  ///< of the mean, by parameter; undefined for those that the loss does not depend on
  };
  /// `forward` is called with parts of the batch and gives sums (StepOutput::count); ValueError where it does not.
  virtual Joined gradients(const Batch& batch, const Forward& forward) = 0;
  virtual Joined evaluate(const Batch& batch, const Forward& forward) = 0;
  /// The update by gradients of the whole batch.
  virtual void update(const Tensors& gradients) = 0;

  /// The predictions of all rows, on every process, from those of each process's rows.
  virtual Tensor whole(const Tensor& prediction, std::int64_t rows) = 0;
  /// Whether this is the process that writes files and shows progress.
  virtual bool is_main() const = 0;
  virtual bool any(bool yes) = 0;
  /// The text of the first process whose text is not empty; empty where none is.
  virtual std::string first_text(const std::string& own) = 0;
  /// Throws ValueError, on all processes, where numbers that should be equal are not: "fit: the ranks <differ>".
  virtual void check_equal(std::uint64_t number, const std::string& differ) = 0;

  /// The main process writes; throws IoError on all where it cannot.
  virtual void save(const std::filesystem::path& path, const TrainingParts& parts, const Checkpoint& checkpoint) = 0;
  /// The main process reads, and all stand where the file stood; none where there is no such file. Throws IoError on
  /// all where it does not fit, and nothing has changed then.
  virtual std::optional<Checkpoint> load(const std::filesystem::path& path, const TrainingParts& parts) = 0;
  /// The training has ended well: the optimiser is whole on every process.
  virtual void end() = 0;
  /// This process leaves by an exception that the others may not have: they need not wait for it.
  virtual void abandon() noexcept = 0;
};

/// Processes that can train together, as FitOptions::parallel takes them.
class Parallel {
 public:
  virtual ~Parallel() = default;
  /// Every process then has the main one's parameters, buffers, states and optimiser. No optimiser: for evaluation.
  virtual std::unique_ptr<ParallelRun> begin(const nn::Module& model, nn::Optimizer* optimizer) const = 0;
};

}  // namespace ferrite::train
