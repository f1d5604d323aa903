#pragma once
/// The part of a batch that one shard is, and what the function of a step makes of it.
#include <functional>

#include "ferrite/distributed/shards.h"
#include "ferrite/nn/module.h"
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

}  // namespace ferrite::mpi
