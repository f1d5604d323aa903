#pragma once
/// The ranks of an MPI job: their number, and communication between them.
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

/// Thrown when another rank has died, hangs, has left, or runs another program, or when MPI reports an error. The world
/// is unusable afterwards: every further call throws the error again.
class RankError : public Error {
 public:
  RankError(const std::string& what, std::string operation, std::vector<int> ranks)
      : Error(what), operation_(std::move(operation)), ranks_(std::move(ranks)) {}
  /// Returns the operation for which this rank was waiting: "broadcast".
  const std::string& operation() const& noexcept { return operation_; }
  std::string operation() const&& { return operation_; }
  /// Returns the ranks that did not answer, ascending; empty if they are not known.
  const std::vector<int>& ranks() const& noexcept { return ranks_; }
  std::vector<int> ranks() const&& { return ranks_; }

 private:
  std::string operation_;
  std::vector<int> ranks_;
};

namespace detail {
class Link;
}

/// The options of a World: how long its ranks wait for each other.
struct WorldOptions {
  /// Time that a rank waits for the others before it throws RankError. It must exceed the time by which ranks may
  /// differ in reaching the same place of the program, reading data, tracing and compiling included.
  std::chrono::milliseconds timeout = std::chrono::minutes(5);
};

/// The communication of this rank for sums and gradients: the number of exchanges, and the bytes that they passed to
/// MPI and got from it.
struct Traffic {
  std::int64_t exchanges = 0, bytes_sent = 0, bytes_received = 0;
};

/// All ranks of an MPI job. A world starts MPI, unless MPI runs already, and ends MPI if it started it. Without mpirun
/// it has one rank.
///
///   int main(int argc, char** argv) {
///     const mpi::World world(argc, argv, {.timeout = std::chrono::seconds(60)});
///
/// Every rank makes the same calls in the same order; each throws RankError when the others do not take part in time
/// (docs/distributed.md). One thread at a time may use a world; an MPI that already runs must allow that
/// (MPI_THREAD_SERIALIZED). A world that is destroyed by an exception does not wait for the others and does not end
/// MPI. The process should then exit with a status other than 0, at which mpirun ends the job.
class World {
 public:
  /// Joins the MPI job. Throws ValueError for a timeout below 10 ms, and for an MPI that runs with too low a thread
  /// level or has ended; RankError when MPI reports an error.
  World(int& argc, char**& argv, const WorldOptions& options = {});
  explicit World(const WorldOptions& options = {});
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const noexcept;        ///< returns the rank of this process, 0 <= rank() < size()
  int size() const noexcept;        ///< returns the number of all ranks
  int local_rank() const noexcept;  ///< returns the rank of this process among those of this machine
  int local_size() const noexcept;  ///< returns the number of ranks on this machine
  std::chrono::milliseconds timeout() const noexcept;

  /// Returns when every rank has called it.
  void barrier() const;
  /// Returns the root's x on every rank. All ranks pass tensors of one shape and dtype; only the root's values are
  /// read. Throws ValueError for a root that does not exist.
  Tensor broadcast(const Tensor& x, int root = 0) const;
  /// Returns the sum of all ranks' x, f32, f64 or i64, in x's shape. It has the same bits on every rank. Floats are
  /// added along a binary tree over the ranks, so they depend on the number of ranks (those of DataParallel do not).
  /// Throws DtypeError for another dtype.
  Tensor sum(const Tensor& x) const;
  double sum(double x) const;
  /// Returns on every rank whether `yes` is true on any rank, for example to stop early.
  bool any(bool yes) const;
  /// Returns on every rank whether `yes` is true on all of them.
  bool all(bool yes) const;

  /// Returns this rank's traffic since the world began.
  Traffic traffic() const noexcept;

  /// Returns the link below the world, for use within ferrite::mpi.
  const std::shared_ptr<detail::Link>& link() const noexcept { return link_; }

 private:
  std::shared_ptr<detail::Link> link_;
  int exceptions_ = 0;  ///< number of exceptions in flight when the world was made
};

/// Copies the root's values of variables to every rank, all of which pass them in the same order. Throws ValueError
/// when their names or types differ, and RankError.
void broadcast(const World& world, const std::vector<Variable>& variables, int root = 0);

}  // namespace ferrite::mpi
