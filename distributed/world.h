#pragma once
/// The ranks of an MPI job as a program sees them: how many there are, and what they tell each other.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ferrite/tensor/error.h"
#include "ferrite/tensor/tensor.h"
#include "ferrite/tensor/variable.h"

namespace ferrite::mpi {

/// Another rank has died, hangs, has left, or runs another program; or MPI reports an error. After it the world is of
/// no more use: every further call throws it again.
class RankError : public Error {
 public:
  RankError(const std::string& what, std::string operation, std::vector<int> ranks)
      : Error(what), operation_(std::move(operation)), ranks_(std::move(ranks)) {}
  /// What this rank was waiting for: "broadcast".
  const std::string& operation() const& noexcept { return operation_; }
  std::string operation() const&& { return operation_; }
  /// Those that did not answer, ascending; empty where that is not known.
  const std::vector<int>& ranks() const& noexcept { return ranks_; }
  std::vector<int> ranks() const&& { return ranks_; }

 private:
  std::string operation_;
  std::vector<int> ranks_;
};

namespace detail {
class Link;
}

struct WorldOptions {
  /// How long a rank waits for the others before it throws RankError: longer than the ranks may differ in reaching the
  /// same place of the program, which includes reading data, tracing and compiling.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

/// What this rank has sent and received for sums and gradients, by the elements that it gave MPI.
struct Traffic {
  std::int64_t exchanges = 0, bytes_sent = 0, bytes_received = 0;
};

/// All ranks of an MPI job. Starts MPI, unless it runs already, and ends it if it started it. Without mpirun it is a
/// world of one rank.
///
///   int main(int argc, char** argv) {
///     const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
///
/// Every rank makes the same calls in the same order; each throws RankError when the others do not take part in time
/// (docs/distributed.md). For one thread at a time; MPI that already runs must allow that (MPI_THREAD_SERIALIZED). A
/// world that is destroyed by an exception does not wait for the others and does not end MPI: the process then should
/// exit with a status other than 0, at which mpirun ends the job.
class World {
 public:
  /// Throws ValueError for a timeout below 10 ms, for MPI that runs with too low a thread level or has ended; RankError
  /// where MPI reports an error.
  World(int& argc, char**& argv, const WorldOptions& options = {});
  explicit World(const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const noexcept;  ///< of this process, 0 up to size() - 1
  int size() const noexcept;
  int local_rank() const noexcept;  ///< among the ranks of this machine
  int local_size() const noexcept;
  std::chrono::milliseconds timeout() const noexcept;

  /// Returns when every rank has called it.
  void barrier() const;
  /// The root's x, on every rank. Ranks give tensors of one shape and dtype; the values of the others are not read.
  /// Throws ValueError for a root that there is not.
  Tensor broadcast(const Tensor& x, int root = 0) const;
  /// The sum of all ranks' x, of x's shape: f32, f64, or i64. The same bits on every rank, in the order of a binary
  /// tree over the ranks: floats depend on how many there are (those of DataParallel do not). Throws DtypeError for
  /// another dtype.
  Tensor sum(const Tensor& x) const;
  double sum(double x) const;
  /// Whether any rank, or every rank, says so: to stop early on all of them.
  bool any(bool yes) const;
  bool all(bool yes) const;

  /// Since the world began.
  Traffic traffic() const noexcept;

  /// For the parts of ferrite::mpi.
  const std::shared_ptr<detail::Link>& link() const noexcept { return link_; }

 private:
  std::shared_ptr<detail::Link> link_;
  int exceptions_ = 0;  ///< in flight when it was made
};

/// Gives every rank the root's values of variables that all have, in one order. Throws ValueError where names or shapes
/// differ, RankError.
void broadcast(const World& world, const std::vector<Variable>& variables, int root = 0);

}  // namespace ferrite::mpi
