#pragma once
/// MPI as the other sources use it: requests that are polled until a deadline, and errors that name the silent ranks.
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

/// How the elements of all ranks are joined.
enum class Join : std::uint8_t { sum, maximum, gather };

/// Who gives what in an exchange: for sums and maxima the nodes of a tree that each rank holds, for a gathering how
/// many elements.
struct Pattern {
  Join join = Join::sum;
  int channel = 0;                           ///< exchanges of one channel have one order on all ranks
  Tree tree{1};                              ///< over the leaves of all ranks
  std::vector<std::vector<Leaves>> nodes{};  ///< by rank
  std::vector<std::int64_t> counts{};        ///< gather: elements by rank
};

/// The communicators of a world and what is under way on them.
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

  /// Frees the communicators and ends MPI if this began it. With `in_haste`, or after an error, leaves all as it is.
  static void end(std::shared_ptr<Link> link, bool in_haste);

  void barrier();
  /// The root's bytes, on every rank.
  void broadcast(std::byte* bytes, std::size_t n, int root);
  /// The bytes of all ranks one behind the other, on every rank; `counts` by rank. Throws ValueError for more bytes
  /// than MPI counts.
  void gather(const std::byte* own, const std::vector<std::size_t>& counts, std::byte* all);
  /// This rank leaves: the others that wait for it throw.
  void leave() noexcept;

  /// Registers a pattern, and gives its number, of which operations speak. Patterns live as long as the link.
  std::int64_t add(Pattern pattern);
  /// Begins an exchange of `count` elements: what this rank gives is read before it returns. Gives its ticket. Throws
  /// RankError, and ValueError for more elements than MPI counts.
  std::int64_t start(std::int64_t pattern, Dtype dtype, std::int64_t count, const std::vector<const std::byte*>& given);
  /// Waits for an exchange and writes its result.
  void finish(std::int64_t ticket, std::byte* result);
  /// Lets exchanges go on.
  void poll();
  /// Lets go of exchanges that nobody waits for any more; whether all are done.
  bool drained();

  /// Of all exchanges begun so far.
  const Traffic& traffic() const { return traffic_; }

 private:
  struct Exchange;
  struct Note;
  void check(int code, const std::string& operation);
  void check_alive();
  /// Polls until it holds; throws RankError after the timeout.
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
  MPI_Comm direct_ = MPI_COMM_NULL;   ///< barriers and broadcasts
  MPI_Comm control_ = MPI_COMM_NULL;  ///< who is alive
  MPI_Comm scatter_[kChannels] = {}, gather_[kChannels] = {};
  std::deque<Pattern> patterns_;
  std::map<std::int64_t, std::unique_ptr<Exchange>> exchanges_;  ///< under way, by ticket
  std::deque<std::unique_ptr<Exchange>> spares_;                 ///< ended, with their buffers
  std::int64_t next_ticket_ = 1;
  Traffic traffic_;
  std::vector<std::unique_ptr<Note>> notes_;  ///< on their way
  std::vector<char> answered_;                ///< by rank, while this one asks
  Clock::time_point last_answer_{};
  std::string failure_;  ///< empty while all is well
  std::string failed_operation_;
  std::vector<int> failed_ranks_;
};

/// The link that has a number in this process. Throws ValueError for one that has ended.
std::shared_ptr<Link> link_of(std::int64_t number);

/// The number of a link.
std::int64_t number_of(const std::shared_ptr<Link>& link);

// ---- exchanges that are recorded -----------------------------------------------------------------------

/// A pattern of a link, for elements of one dtype.
struct Route {
  std::int64_t link = 0, pattern = 0;
  bool alone = false;  ///< one rank: nothing is sent
};
Route route_of(const std::shared_ptr<Link>& link, Pattern pattern);

/// What has been sent and not yet waited for.
struct Sent {
  Tensor ticket{};  ///< undefined where there is one rank
  Tensor whole{};   ///< there, the result
  Spec result{};
};

/// Begins to join the nodes of this rank, each [N] of one dtype (f32, f64, i64), with those of the others; `total` is
/// the N of the result, which for a gathering is the sum of all ranks'.
Sent start(const Route& route, const Tensors& nodes, std::int64_t total);

/// The joined elements [N].
Tensor wait(const Route& route, const Sent& sent);

/// Both.
Tensor exchanged(const Route& route, const Tensors& nodes);

// ---- bytes and texts -----------------------------------------------------------------------------------

/// The root's bytes, on every rank, whatever the others have.
void broadcast_bytes(const World& world, std::vector<std::byte>& bytes, int root = 0);

/// The text of the lowest rank whose text is not empty; empty where none is.
std::string first_text(const World& world, const std::string& own);

}  // namespace ferrite::mpi::detail
