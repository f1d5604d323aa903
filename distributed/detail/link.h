#pragma once
/// The layer over MPI: requests that are polled until a deadline, and errors that name the silent ranks.
#include <mpi.h>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ferrite/distributed/detail/tree.h"
#include "ferrite/distributed/world.h"
#include "ferrite/tensor/dtype.h"
#include "ferrite/tensor/tensor.h"

// ---- links ---------------------------------------------------------------------------------------------

namespace ferrite::mpi::detail {

/// The operation that joins the elements of all ranks.
enum class Join : std::uint8_t { sum, maximum, gather };

/// The contributions of the ranks to an exchange: for sums and maxima the nodes of a tree that each rank holds, for a
/// gathering its number of elements.
struct Pattern {
  Join join = Join::sum;
  int channel = 0;                           ///< channel within which exchanges have the same order on all ranks
  Tree tree{1};                              ///< tree over the leaves of all ranks
  std::vector<std::vector<Leaves>> nodes{};  ///< nodes that each rank holds
  std::vector<std::int64_t> counts{};        ///< gather: number of elements of each rank
};

/// The communicators of a world and the operations under way on them.
class Link : public std::enable_shared_from_this<Link> {
 public:
  using Clock = std::chrono::steady_clock;

  Link(int* argc, char*** argv, std::chrono::milliseconds timeout);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  std::chrono::milliseconds timeout() const { return timeout_; }

  /// Frees the communicators, and ends MPI if the link started it. With `in_haste` or after an error leaves everything
  /// as it is.
  static void end(std::shared_ptr<Link> link, bool in_haste);

  void barrier();
  /// Copies the root's bytes to every rank.
  void broadcast(std::byte* bytes, std::size_t n, int root);
  /// Concatenates the bytes of all ranks on every rank; `counts` has the number of each rank's bytes. Throws ValueError
  /// for more bytes than MPI counts.
  void gather(const std::byte* own, const std::vector<std::size_t>& counts, std::byte* all);
  /// Makes this rank leave the job: other ranks that wait for it throw.
  void leave() noexcept;

  /// Registers a pattern and returns its number, which operations use. Patterns live as long as the link.
  std::int64_t add(Pattern pattern);
  /// Begins an exchange of `count` elements and returns its ticket; `given` is read before it returns. Throws
  /// RankError, and ValueError for more elements than MPI counts.
  std::int64_t start(std::int64_t pattern, Dtype dtype, std::int64_t count, const std::vector<const std::byte*>& given);
  /// Waits for an exchange and writes its result.
  void finish(std::int64_t ticket, std::byte* result);
  /// Advances the exchanges under way.
  void poll();
  /// Removes exchanges that are done and that will not be finished; returns whether none is left.
  bool drained();

  /// Returns the traffic of all exchanges begun so far.
  const Traffic& traffic() const { return traffic_; }

 private:
  struct Exchange;
  struct Note;
  void check(int code, const std::string& operation);
  void check_alive();
  /// Polls until `done` returns true. Throws RankError after the timeout.
  void until(const std::function<bool()>& done, const std::string& operation);
  std::unique_ptr<Exchange> spare(std::int64_t pattern, Dtype dtype, std::int64_t count);
  static bool gathers(const Exchange& e);
  void advance(Exchange& e);
  void join_segments(Exchange& e);
  bool is_done(MPI_Request& request, const std::string& operation);
  std::unique_ptr<Note> arrived(std::unique_ptr<Note> note, const std::string& operation);
  void answer();
  void send_note(int to, int tag, const std::vector<int>& words);
  [[noreturn]] void diagnose(const std::string& operation, Clock::time_point deadline);
  [[noreturn]] void fail(const std::string& operation, const std::string& what, std::vector<int> ranks);

  static constexpr int kChannels = 2;
  std::chrono::milliseconds timeout_;
  bool started_mpi_ = false;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
  MPI_Comm direct_ = MPI_COMM_NULL;   ///< communicator of barriers, broadcasts and gatherings of bytes
  MPI_Comm control_ = MPI_COMM_NULL;  ///< communicator of notes about which ranks are alive
  MPI_Comm scatter_[kChannels] = {}, gather_[kChannels] = {};
  std::deque<Pattern> patterns_;
  std::map<std::int64_t, std::unique_ptr<Exchange>> exchanges_;  ///< exchanges under way, by ticket
  std::deque<std::unique_ptr<Exchange>> spares_;                 ///< finished exchanges whose buffers can be reused
  std::int64_t next_ticket_ = 1;
  Traffic traffic_;
  std::vector<std::unique_ptr<Note>> notes_;  ///< notes whose requests are under way
  std::vector<char> answered_;                ///< whether each rank has answered this one's question
  Clock::time_point last_answer_{};
  std::string failure_;  ///< message of the first error; empty before it
  std::string failed_operation_;
  std::vector<int> failed_ranks_;
};

/// Returns the link with a number in this process. Throws ValueError for a link that has ended.
std::shared_ptr<Link> link_of(std::int64_t number);

/// Returns the number of a link in this process; registers it if it is new.
std::int64_t number_of(const std::shared_ptr<Link>& link);

// ---- exchanges that are recorded -----------------------------------------------------------------------

/// A pattern of a link, for exchanges that are recorded as operations.
struct Route {
  std::int64_t link = 0, pattern = 0;
  bool alone = false;  ///< whether there is one rank, so that nothing is sent
};
Route route_of(const std::shared_ptr<Link>& link, Pattern pattern);

/// An exchange that has begun and has not been waited for.
struct Sent {
  Tensor ticket{};  ///< ticket of the exchange; undefined with one rank
  Tensor whole{};   ///< the result with one rank; else undefined
  Spec result{};
};

/// Begins to join the nodes of this rank, each [N] of one dtype (f32, f64, i64), with those of the other ranks. `total`
/// is the N of the result, which for a gathering is the sum over all ranks.
Sent start(const Route& route, const Tensors& nodes, std::int64_t total);

/// Waits for an exchange and returns the joined elements [N].
Tensor wait(const Route& route, const Sent& sent);

/// Joins the nodes of this rank with those of the others and returns the result: `start`, then `wait`.
Tensor exchanged(const Route& route, const Tensors& nodes);

// ---- bytes and texts -----------------------------------------------------------------------------------

/// Copies the root's bytes to every rank, whatever bytes the others have.
void broadcast_bytes(const World& world, std::vector<std::byte>& bytes, int root = 0);

/// Returns the text of the lowest rank whose text is not empty; empty if there is none.
std::string first_text(const World& world, const std::string& own);

}  // namespace ferrite::mpi::detail
