#pragma once
/// Training checkpoints of all ranks: rank 0 writes and reads one file, whatever the number of ranks.
#include <filesystem>

#include "ferrite/distributed/sharded_optimizer.h"
#include "ferrite/distributed/world.h"
#include "ferrite/train/checkpoint.h"

namespace ferrite::mpi {

/// Rank 0 writes the file of train::save_checkpoint, which any number of ranks, and programs without MPI, go on from
/// with the same bits. Returns when it stands. All ranks call it. Throws as train::save_checkpoint, on every rank where
/// rank 0 cannot write; RankError.
void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const train::Checkpoint& checkpoint);
/// The same where an optimiser is spread over the ranks: its whole one is the first of the file, and `parts` names the
/// others.
void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const ShardedOptimizer& optimizer, const train::Checkpoint& checkpoint);
/// The same of one optimiser, as train::save_checkpoint has it.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const nn::Optimizer& optimizer, const train::Position& position,
                     const nn::Schedule* schedule = nullptr, const nn::WeightAverage* average = nullptr);
/// Without a schedule, which needs an optimiser that is whole: set the rate from Position::step.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const ShardedOptimizer& optimizer, const train::Position& position,
                     const nn::WeightAverage* average = nullptr);

/// Rank 0 reads the file, which the others need not see, and all ranks stand where it stood. All ranks call it. Throws
/// IoError on every rank where it cannot be read or does not fit, and nothing has changed then; RankError.
train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts);
train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts, const ShardedOptimizer& optimizer);
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const nn::Optimizer& optimizer, nn::Schedule* schedule = nullptr,
                                const nn::WeightAverage* average = nullptr);
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const ShardedOptimizer& optimizer, const nn::WeightAverage* average = nullptr);

}  // namespace ferrite::mpi
