#pragma once
/// Training one model on several ranks, with bits that do not depend on the number of ranks.
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

/// The rows of one of the shards that a rank computes: the argument of a step's function, called once for each.
struct ShardBatch {
  Tensors tensors;      ///< the shard's rows of each tensor of the batch
  Tensor x, y;          ///< the first two of `tensors`; undefined if there are fewer
  int shard = 0;        ///< number of the shard among those of all ranks
  Rows rows;            ///< range of the rows in the whole batch
  nn::Context context;  ///< context for layers; with its replicas batch norms use the whole batch
};

/// The result of a shard: a sum of losses (not a mean) and their number.
using Sum = train::LossSum;
/// A function that computes the losses of a shard.
using ShardFunction = std::function<Sum(const ShardBatch&)>;

/// This rank's rows of a batch, those of its shards in order, and the number of rows of the whole batch.
struct OwnRows {
  Tensors tensors;        ///< this rank's rows of each tensor
  std::int64_t rows = 0;  ///< number of rows of the whole batch
};

/// The options of DataParallel: the cut of a batch into shards, and what happens to gradients.
struct DataParallelOptions {
  /// Number of shards into which a batch is cut. The number of ranks must divide it: 12 for 1, 2, 3, 4, 6 or 12 ranks.
  /// Results depend on it, but not on the number of ranks.
  int shards = 12;
  std::int64_t bucket_bytes = std::int64_t{1} << 20;  ///< approximate size of the buckets in which gradients are sent
  double clip_norm = 0;  ///< largest norm of all gradients together (nn::clip_grad_norm); 0: no limit
  /// Variables outside the model that a shard's function writes, such as `calls` of a Generator.
  std::vector<Variable> variables{};
};

/// Runs training steps of one optimiser on all ranks of a world, in a loop of your own. With train::fit use mpi::ranks
/// (ferrite/distributed/ranks.h) instead.
///
///   mpi::DataParallel dp(world, net, adam);
///   const Tensor loss = dp.step({x, y}, [&](const mpi::ShardBatch& b) {
///     return mpi::Sum(nn::cross_entropy(net(b.x, b.context), b.y, {.reduction = nn::Reduction::sum}), b.rows.size());
///   });
///
/// The batch is cut into a fixed number of shards. Gradients and losses are summed within each shard, and the sums are
/// joined in one binary tree over the shards, whichever ranks hold them. Then they are divided by the joined count, and
/// every rank makes the same update. So parameters, losses and states have the same bits for every number of ranks, one
/// process without mpirun included. Steps may be compiled. docs/distributed.md describes everything.
///
/// In a step every shard sees buffers and states as they were before it. Afterwards buffers and states of floats are
/// the mean over the shards that have rows, and counters the largest of theirs. Draws of a shard (dropout, generators
/// named in the options) depend on the shard alone: counters, which are i64 states of rank 0, are offset by
/// shard * 2^40 while it runs. A shard without rows is not computed, unless its rank has no other: the function is then
/// called with zero rows.
///
/// Gradient hooks on parameters (GradientHook) see each shard's gradient; their results are ignored.
class DataParallel {
 public:
  /// Copies rank 0's parameters, buffers, states and optimiser to every rank. Throws ValueError for options out of
  /// range, for ranks that do not divide the shards, and when ranks have different models; RankError. The world, the
  /// model and the optimiser must outlive it.
  DataParallel(const World& world, const nn::Module& model, nn::Optimizer& optimizer,
               const DataParallelOptions& options = {});
  /// Makes the same for an optimiser whose states are spread over the ranks.
  DataParallel(const World& world, const nn::Module& model, const ShardedOptimizer& optimizer,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Makes one update on a batch [N, ...], which every rank passes whole and of which it computes its own shards.
  /// Returns the mean loss, a tensor of rank 0 in the losses' dtype. Throws what the function and the optimiser throw;
  /// ShapeError for tensors of different numbers of rows; ValueError for no rows and when the joined count is not
  /// positive, before anything has changed; TapeError under a tape; RankError. A rank whose function throws leaves the
  /// others waiting until their timeout.
  Tensor step(const Tensors& batch, const ShardFunction& loss) const;
  /// Makes one update on a batch of which each rank passes only its own rows. Also throws ShapeError unless these are
  /// as many as its shards have.
  Tensor step(const OwnRows& batch, const ShardFunction& loss) const;
  /// Returns sum and count over all shards, f64 of rank 0, without gradients, for metrics. They have the same bits for
  /// every number of ranks. The model should be in evaluation mode. Throws as `step`.
  Sum evaluate(const Tensors& batch, const ShardFunction& f) const;
  Sum evaluate(const OwnRows& batch, const ShardFunction& f) const;

  /// Returns the range of this rank's rows in a batch of `rows` rows.
  Rows own_rows(std::int64_t rows) const;
  const World& world() const noexcept;
  int shards() const noexcept;  ///< returns the number of shards into which every batch is cut
  /// Returns the number of buckets in which a step sends gradients; 0 before the first step.
  std::int64_t buckets() const noexcept;
  /// Returns how many of a step's buckets were sent before its last gradient was ready, in the last step that ran
  /// eagerly or was traced; 0 before the first step.
  std::int64_t buckets_sent_early() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ferrite::mpi
