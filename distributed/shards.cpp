/// The rows of shards, and the order of an epoch.
#include "ferrite/distributed/shards.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "ferrite/tensor/random.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::mpi {

Rows rows_of_shard(std::int64_t rows, int shards, int shard) {
  if (rows < 0 || shards < 1 || shard < 0 || shard >= shards)
    throw ValueError("mpi: rows_of_shard: there is no such shard: " + std::to_string(shard) + " of " +
                     std::to_string(shards) + ", of " + std::to_string(rows) + " rows");
  const std::int64_t each = rows / shards, more = rows % shards;
  const auto begin = [&](std::int64_t s) { return s * each + std::min(s, more); };
  return {begin(shard), begin(shard + 1)};
}

Epoch::Epoch(std::int64_t rows, const EpochOptions& options, std::int64_t epoch) : options_(options) {
  if (rows < 1 || options.batch_rows < 1 || options.shards < 1)
    throw ValueError("mpi::Epoch: rows, batch_rows and shards must be positive, got " + std::to_string(rows) + ", " +
                     std::to_string(options.batch_rows) + " and " + std::to_string(options.shards));
  steps_ = rows / options.batch_rows;
  if (!options.drop_last && rows % options.batch_rows != 0) ++steps_;
  if (options.shuffle) {
    const NewFrame frame;
    order_ =
        permutation(rows,
                    {.seed = options.seed, .stream = stream_of("mpi.epoch"), .call = static_cast<std::uint64_t>(epoch)})
            .to_vector<std::int64_t>();
  } else {
    order_.resize(static_cast<std::size_t>(rows));
    std::iota(order_.begin(), order_.end(), 0);
  }
}

std::int64_t Epoch::rows_in(std::int64_t step) const {
  if (step < 0 || step >= steps_)
    throw ValueError("mpi::Epoch: there is no step " + std::to_string(step) + ": there are " + std::to_string(steps_));
  return std::min(options_.batch_rows, static_cast<std::int64_t>(order_.size()) - step * options_.batch_rows);
}

std::vector<std::int64_t> Epoch::rows(std::int64_t step, int rank, int ranks) const {
  const std::int64_t all = rows_in(step);
  if (ranks < 1 || rank < 0 || rank >= ranks || options_.shards % ranks != 0)
    throw ValueError("mpi::Epoch: rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " has no part of " +
                     std::to_string(options_.shards) + " shards; take a number of ranks that divides them");
  const int each = options_.shards / ranks;
  const auto first = order_.begin() + step * options_.batch_rows;
  return {first + rows_of_shard(all, options_.shards, rank * each).begin,
          first + rows_of_shard(all, options_.shards, (rank + 1) * each - 1).end};
}

}  // namespace ferrite::mpi
