#pragma once
/// Training checkpoints for all ranks: rank 0 writes and reads one file, whatever the number of ranks.
#include <filesystem>

#include "ferrite/distributed/sharded_optimizer.h"
#include "ferrite/distributed/world.h"
#include "ferrite/train/checkpoint.h"

namespace ferrite::mpi {

/// Saves a checkpoint, which rank 0 writes with train::save_checkpoint. Any number of ranks, and programs without MPI,
/// can resume from the file with the same bits. All ranks call it, and it returns when the file is written. Throws on
/// every rank what train::save_checkpoint throws on rank 0 (IoError on the others), and RankError.
void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const train::Checkpoint& checkpoint);
/// Saves a checkpoint with an optimiser that is spread over the ranks. The whole optimiser is the first of the file;
/// `parts` lists any others.
void save_checkpoint(const World& world, const std::filesystem::path& path, const train::TrainingParts& parts,
                     const ShardedOptimizer& optimizer, const train::Checkpoint& checkpoint);
/// Saves a checkpoint of a training with one optimiser.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const nn::Optimizer& optimizer, const train::Position& position,
                     const nn::Schedule* schedule = nullptr, const nn::WeightAverage* average = nullptr);
/// Saves a checkpoint of a training with one optimiser that is spread over the ranks. A schedule needs a whole
/// optimiser; instead set the rate from Position::step.
void save_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                     const ShardedOptimizer& optimizer, const train::Position& position,
                     const nn::WeightAverage* average = nullptr);

/// Restores all ranks from a checkpoint, which rank 0 reads; the others need no access to the file. All ranks call it.
/// Throws on every rank what train::load_checkpoint throws, IoError when the file cannot be read or does not fit;
/// nothing has changed then. Also throws RankError.
train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts);
/// Restores all ranks, with an optimiser that is spread over them: the first one of the file.
train::Checkpoint load_checkpoint(const World& world, const std::filesystem::path& path,
                                  const train::TrainingParts& parts, const ShardedOptimizer& optimizer);
/// Restores a training with one optimiser on all ranks and returns its position.
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const nn::Optimizer& optimizer, nn::Schedule* schedule = nullptr,
                                const nn::WeightAverage* average = nullptr);
/// Restores a training with one optimiser that is spread over the ranks, and returns its position.
train::Position load_checkpoint(const World& world, const std::filesystem::path& path, const nn::Module& model,
                                const ShardedOptimizer& optimizer, const nn::WeightAverage* average = nullptr);

}  // namespace ferrite::mpi
