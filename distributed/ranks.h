#pragma once
/// Running train::fit and train::evaluate on all ranks of a world.
#include <memory>
#include <vector>

#include "ferrite/distributed/world.h"
#include "ferrite/train/parallel.h"

namespace ferrite::mpi {

/// The options of `ranks`: the cut of a batch into shards, and what each rank keeps and sends.
struct RanksOptions {
  /// Number of shards into which every batch is cut. The number of ranks must divide it: 12 for 1, 2, 3, 4, 6 or 12
  /// ranks. Results depend on it, but not on the number of ranks.
  int shards = 12;
  std::int64_t bucket_bytes = std::int64_t{1} << 20;  ///< approximate size of the buckets in which gradients are sent
  /// Makes each rank keep the states (moments) of its part of the parameters alone while it trains, and update only
  /// these. The bits are those of a whole optimiser. The optimiser is whole before and after `fit`, and on rank 0 while
  /// it saves.
  bool shard_optimizer = false;
  /// Variables outside the model that a forward pass or a loss writes, such as `calls` of a Generator.
  std::vector<Variable> variables{};
};

/// Returns the option with which `fit` is one training of all ranks:
///
///   const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
///   train::fit(net, loader,
///              {.loss = "cross_entropy", .optimizer = &adam, .epochs = 20, .parallel = mpi::ranks(world)});
///
/// Every rank makes the call with the same net, data and options, and gets the same parameters and history. These and
/// the checkpoint have the same bits for every number of ranks, one process without mpirun included. Gradients are
/// those of the mean over the whole batch, however many targets each shard counts. Batch norms that get Batch::context
/// compute their statistics over the whole batch. Draws depend on the shard (mpi::DataParallel has the rules).
///
/// `fit` and `evaluate` then throw ValueError for ranks that do not divide the shards, for ranks with different models,
/// options or data, and for a forward pass that returns a mean; ShapeError for a field of a batch or a prediction whose
/// first axis is not the rows of the batch; RankError within the world's timeout when a rank is lost, and at once when
/// an exception ends the training of another rank. The world must outlive the training.
std::shared_ptr<const train::Parallel> ranks(const World& world, const RanksOptions& options = {});

}  // namespace ferrite::mpi
