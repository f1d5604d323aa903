#pragma once
/// The division of the rows of a batch and of a data set into shards, whichever ranks compute them.
#include <cstdint>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite::mpi {

/// A range of consecutive rows [begin, end).
struct Rows {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

/// Returns the rows of a shard. If the shards do not divide the rows, the first shards have one more; some may have
/// none. Throws ValueError for a negative number of rows, no shards, and a shard that does not exist.
Rows rows_of_shard(std::int64_t rows, int shards, int shard);

/// The options of an Epoch: the size and the order of its batches.
struct EpochOptions {
  std::int64_t batch_rows = 0;  ///< rows of a batch, of all ranks together; required
  int shards = 12;              ///< number of shards, as in DataParallelOptions
  bool shuffle = true;          ///< whether each epoch has its own random order; otherwise rows keep theirs
  bool drop_last = false;       ///< leaves out a last batch that is smaller
  std::uint64_t seed = 0;       ///< seed of the order
};

/// The order in which an epoch passes through a data set. Every rank has the same number of steps, and each step has
/// the same rows for any number of ranks.
///
///   const mpi::Epoch order(images.size(0), {.batch_rows = 96, .seed = 1}, epoch);
///   for (std::int64_t k = 0; k < order.steps(); ++k) {
///     const Tensor own = order.rows(k, world.rank(), world.size());         // i64: those of this rank
///     dp.step({{index_select(images, 0, own), index_select(labels, 0, own)}, order.rows_in(k)}, loss);
///   }
class Epoch {
 public:
  /// Makes an order of `rows` rows, shuffled by the seed and the number of the epoch. Throws ValueError for no rows, no
  /// rows in a batch, and no shards.
  Epoch(std::int64_t rows, const EpochOptions& options, std::int64_t epoch = 0);

  /// Returns the number of steps (batches) of the epoch, the same on every rank.
  std::int64_t steps() const noexcept { return steps_; }
  /// Returns the number of rows of all ranks in a step. Throws ValueError for a step that does not exist.
  std::int64_t rows_in(std::int64_t step) const;
  /// Returns the numbers of a rank's rows in a step, those of its shards in order. Throws ValueError for a step or a
  /// rank that does not exist, and for ranks that do not divide the shards.
  std::vector<std::int64_t> rows(std::int64_t step, int rank, int ranks) const;

 private:
  EpochOptions options_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> order_;
};

}  // namespace ferrite::mpi
