#pragma once
/// How the rows of a batch and of a data set are cut into shards, whatever rank computes them.
#include <cstdint>
#include <vector>

#include "ferrite/tensor/language.h"

namespace ferrite::mpi {

/// Consecutive rows [begin, end).
struct Rows {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
  bool operator==(const Rows&) const = default;
};

/// The rows of a shard: where the shards do not divide the rows, the first ones have one more; some may have none.
/// Throws ValueError for a negative number of rows, no shards, and a shard that there is not.
Rows rows_of_shard(std::int64_t rows, int shards, int shard);

struct EpochOptions {
  std::int64_t batch_rows = 0;  ///< of all ranks together; must be given
  int shards = 12;              ///< those of the DataParallel
  bool shuffle = true;
  bool drop_last = false;  ///< leave out a last batch that is smaller
  std::uint64_t seed = 0;  ///< of the order
};

/// The order in which an epoch passes through a data set: the same number of steps for every rank, and in each the same
/// rows for any number of ranks.
///
///   const mpi::Epoch order(images.size(0), {.batch_rows = 96, .seed = 1}, epoch);
///   for (std::int64_t k = 0; k < order.steps(); ++k) {
///     const Tensor own = order.rows(k, world.rank(), world.size());         // i64: those of this rank
///     dp.step({{index_select(images, 0, own), index_select(labels, 0, own)}, order.rows_in(k)}, loss);
///   }
class Epoch {
 public:
  /// An order of `rows` rows, shuffled by the seed and the number of the epoch. Throws ValueError for no rows, no rows
  /// in a batch, and no shards.
  Epoch(std::int64_t rows, const EpochOptions& options, std::int64_t epoch = 0);

  std::int64_t steps() const noexcept { return steps_; }
  /// How many rows all ranks have in a step.
  std::int64_t rows_in(std::int64_t step) const;
  /// Which rows a rank has in a step: those of its shards, in order. Throws ValueError for a step or a rank that there
  /// is not, and for ranks that do not divide the shards.
  std::vector<std::int64_t> rows(std::int64_t step, int rank, int ranks) const;

 private:
  EpochOptions options_;
  std::int64_t steps_ = 0;
  std::vector<std::int64_t> order_;
};

}  // namespace ferrite::mpi
