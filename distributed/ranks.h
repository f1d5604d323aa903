#pragma once
/// train::fit and train::evaluate on all ranks of a world.
#include <memory>
#include <vector>

#include "ferrite/distributed/world.h"
#include "ferrite/train/parallel.h"

namespace ferrite::mpi {

struct RanksOptions {
  /// Every batch is cut into so many shards, whatever the number of ranks, which must divide it: 12 for 1, 2, 3, 4, 6
  /// or 12 ranks. Results depend on it.
  int shards = 12;
  std::int64_t bucket_bytes = std::int64_t{1} << 20;  ///< gradients travel in buckets of about this size
  /// Each rank keeps the states (moments) of its part of the parameters alone while it trains, and updates these. The
  /// bits are those of an optimiser that is whole. Before and behind `fit`, and on rank 0 while it saves, it is whole.
  bool shard_optimizer = false;
  /// Variables besides those of the model that a forward pass or a loss writes: `calls` of a Generator.
  std::vector<Variable> variables{};
};

/// What makes `fit` one training of all ranks:
///
///   const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
///   train::fit(net, loader, {.loss = "cross_entropy", .optimizer = &adam, .epochs = 20, .parallel =
///   mpi::ranks(world)});
///
/// Every rank makes the call with the same net, data and options, and then has the same parameters and history; they,
/// and the checkpoint, have the same bits for every number of ranks, one process without mpirun included. Gradients are
/// those of the mean over the whole batch, however many targets each shard counts; batch norms that are given
/// Batch::context take their numbers over the whole batch; draws depend on the shard (mpi::DataParallel has the rules).
/// In `fit` and `evaluate` they throw ValueError for ranks that do not divide the shards, for ranks with different
/// models, options or data, and for a forward pass that gives a mean; ShapeError for a field of a batch or a prediction
/// that does not have the rows of the batch first; RankError within the world's timeout where a rank is lost, and at
/// once where another one's training ends by an exception. The world must outlive the training.
std::shared_ptr<const train::Parallel> ranks(const World& world, const RanksOptions& options = {});

}  // namespace ferrite::mpi
