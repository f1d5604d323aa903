#pragma once
/// Training one model on several ranks, with bits that do not depend on how many there are.
#include <functional>
#include <memory>
#include <vector>

#include "ferrite/distributed/sharded_optimizer.h"
#include "ferrite/distributed/shards.h"
#include "ferrite/distributed/world.h"
#include "ferrite/nn/module.h"
#include "ferrite/nn/optim/optimizer.h"
#include "ferrite/train/loss.h"

namespace ferrite::mpi {

/// The rows of one shard, as the function of a step is given them.
struct ShardBatch {
  Tensors tensors;      ///< the shard's rows of each tensor that the step was given
  Tensor x, y;          ///< the first two of them; undefined where there are fewer
  int shard = 0;        ///< of all shards
  Rows rows;            ///< which rows of the whole batch
  nn::Context context;  ///< for layers: with its replicas batch norms are those of the whole batch
};

/// What a shard gives: a sum of losses, never a mean, and of how many.
using Sum = train::LossSum;
using ShardFunction = std::function<Sum(const ShardBatch&)>;

/// The rows of a batch that this rank has, those of its shards in order, and how many rows all ranks have.
struct OwnRows {
  Tensors tensors;
  std::int64_t rows = 0;
};

struct DataParallelOptions {
  /// The batch is cut into so many shards, whatever the number of ranks, which must divide it: 12 for 1, 2, 3, 4, 6 or
  /// 12 ranks. Results depend on it.
  int shards = 12;
  std::int64_t bucket_bytes = std::int64_t{1} << 20;  ///< gradients travel in buckets of about this size
  double clip_norm = 0;  ///< the largest joint norm of the gradients (nn::clip_grad_norm); 0: any
  /// Variables besides those of the model that a shard's function writes: `calls` of a Generator.
  std::vector<Variable> variables{};
};

/// Steps of one optimiser by all ranks of a world, for loops of one's own. train::fit has them by mpi::ranks
/// (ferrite/distributed/ranks.h).
///
///   mpi::DataParallel dp(world, net, adam);
///   const Tensor loss = dp.step({x, y}, [&](const mpi::ShardBatch& b) {
///     return mpi::Sum(nn::cross_entropy(net(b.x, b.context), b.y, {.reduction = nn::Reduction::sum}), b.rows.size());
///   });
///
/// The batch is cut into a fixed number of virtual shards. Gradients and losses are summed in each shard alone, and the
/// sums are joined in one binary tree over the shards, whatever rank holds them; then they are divided by the joined
/// count, and every rank makes the same update. So parameters, losses and states have the same bits for every number of
/// ranks, one process without mpirun included. Steps may be compiled. docs/distributed.md has the whole.
///
/// In a step every shard sees buffers and states as they were before it. Afterwards buffers and states of floats are
/// the mean over the shards that have rows, counters the largest. Draws of a shard (dropout, generators named in the
/// options) depend on the shard alone: counters, i64 states of rank 0, are set apart by shard * 2^40 while it runs. A
/// shard without rows is not computed, unless a rank has no other: it then calls the function with zero rows.
///
/// Gradient hooks on parameters (GradientHook) see each shard's gradient, and what they give is not used.
class DataParallel {
 public:
  /// Every rank then has rank 0's parameters, buffers, states and optimiser. Throws ValueError for options out of
  /// range, for ranks that do not divide the shards, and where ranks have different models; RankError. The world, the
  /// model and the optimiser must outlive it.
  DataParallel(const World& world, const nn::Module& model, nn::Optimizer& optimizer,
               const DataParallelOptions& options = {});
  /// With the states of the optimiser spread over the ranks.
  DataParallel(const World& world, const nn::Module& model, const ShardedOptimizer& optimizer,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// One step: the batch [N, ...] is given whole to every rank, which computes its own shards. Gives the mean loss, of
  /// the losses' dtype and rank 0. Throws what the function and the optimiser throw; ShapeError for tensors of
  /// different numbers of rows; ValueError for no rows and where the joined count is not positive, before anything has
  /// changed; TapeError under a tape; RankError. A rank whose function throws leaves the others waiting, until their
  /// timeout.
  Tensor step(const Tensors& batch, const ShardFunction& loss) const;
  /// The same where each rank has its own rows only. Throws ShapeError, too, for another number than its shards have.
  Tensor step(const OwnRows& batch, const ShardFunction& loss) const;
  /// Sum and count over all shards, f64 of rank 0, without gradients: for metrics. The same bits for every number of
  /// ranks. The model should be in eval mode. Throws as `step`.
  Sum evaluate(const Tensors& batch, const ShardFunction& f) const;
  Sum evaluate(const OwnRows& batch, const ShardFunction& f) const;

  /// This rank's rows of a batch of so many.
  Rows own_rows(std::int64_t rows) const;
  const World& world() const noexcept;
  int shards() const noexcept;
  /// Buckets in a step, and how many of them left in the last eager one (or were traced) before the last gradient was
  /// there; 0 before the first step.
  std::int64_t buckets() const noexcept;
  std::int64_t buckets_sent_early() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferrite::mpi
