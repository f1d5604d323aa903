#pragma once
/// Training checkpoints of all ranks: rank 0 writes and reads one file, whatever the number of ranks.
#include <filesystem>

#include "ferrite/distributed/sharded_optimizer.h"
#include "ferrite/distributed/world.h"
#include "ferrite/train/checkpoint.h"

namespace ferrite::mpi {

/// Rank 0 writes the file of train::save_checkpoint, which any number of ranks, and programs without MPI, go on from
/// with the same bits. Returns when it stands. All ranks call it. Throws IoError on every rank where it cannot be
/// written, RankError.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const nn::Optimizer& optimizer, const train::Position& position);
/// The same with the states of all ranks' parts.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const ShardedOptimizer& optimizer, const train::Position& position);

/// Rank 0 reads the file, which the others need not see, and all ranks stand where it stood. All ranks call it. Throws
/// IoError on every rank where it cannot be read or does not fit, and nothing has changed then; RankError.
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const nn::Optimizer& optimizer);
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const ShardedOptimizer& optimizer);

}  // namespace ferrite::mpi
