/// Links between ranks: exchanges, in which the nodes of all ranks are joined piece by piece and distributed; exchanges
/// as recorded operations; bytes and texts.
#include "ferrite/distributed/detail/link.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>

#include "ferrite/distributed/world.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/strided.h"

namespace ferrite::mpi::detail {

/// One exchange. Every rank joins the tree for its piece of the elements: it receives the pieces of all nodes (all to
/// all), and sends the joined piece to all ranks (all gather). A gathering consists of the second half alone.
struct Link::Exchange {
  enum class Stage : std::uint8_t { scattering, joined, gathering, done };

  const Pattern* pattern = nullptr;
  Dtype dtype = Dtype::f32;
  std::int64_t count = 0;
  Stage stage = Stage::scattering;
  MPI_Request scatter = MPI_REQUEST_NULL, gather = MPI_REQUEST_NULL;
  std::vector<std::byte> sent, received;  ///< this rank's nodes for others, and all nodes' parts of this rank's piece
  std::vector<std::byte> result;          ///< the result, with this rank's piece in its place
  std::vector<int> send_counts, send_begins, receive_counts, receive_begins;  ///< elements to and from each rank
  std::vector<int> piece_counts, piece_begins;                                ///< elements of each rank's piece
};

// ---- an exchange ---------------------------------------------------------------------------------------

namespace {

MPI_Datatype type_of(Dtype dtype) {
  return dtype == Dtype::f64 ? MPI_DOUBLE : dtype == Dtype::i64 ? MPI_INT64_T : MPI_FLOAT;
}

std::size_t bytes_of(std::int64_t elements, Dtype dtype) { return static_cast<std::size_t>(elements * size_of(dtype)); }

/// Joins b into a, element by element: a = a + b, or the larger one.
template <class T>
void join_values(T* a, const T* b, std::int64_t n, Join join) {
  if (join == Join::sum) {
    for (std::int64_t i = 0; i < n; ++i) a[i] = a[i] + b[i];
  } else {
    for (std::int64_t i = 0; i < n; ++i) a[i] = std::max(a[i], b[i]);
  }
}
void join_bytes(std::byte* a, const std::byte* b, std::int64_t n, Dtype dtype, Join join) {
  if (dtype == Dtype::f64)
    join_values(reinterpret_cast<double*>(a), reinterpret_cast<const double*>(b), n, join);
  else if (dtype == Dtype::i64)
    join_values(reinterpret_cast<std::int64_t*>(a), reinterpret_cast<const std::int64_t*>(b), n, join);
  else
    join_values(reinterpret_cast<float*>(a), reinterpret_cast<const float*>(b), n, join);
}

/// Returns the positions of consecutive parts.
std::vector<int> begins_of(const std::vector<int>& counts) {
  std::vector<int> begins(counts.size());
  for (std::size_t i = 1; i < counts.size(); ++i) begins[i] = begins[i - 1] + counts[i - 1];
  return begins;
}

}  // namespace

std::int64_t Link::add(Pattern pattern) {
  patterns_.push_back(std::move(pattern));
  return static_cast<std::int64_t>(patterns_.size()) - 1;
}

/// Returns an exchange with its buffers: a finished one of the same kind, or a new one. Fresh pages would cost more
/// than the copies.
std::unique_ptr<Link::Exchange> Link::spare(std::int64_t pattern, Dtype dtype, std::int64_t count) {
  const Pattern* const wanted = &patterns_.at(static_cast<std::size_t>(pattern));
  for (auto at = spares_.begin(); at != spares_.end(); ++at) {
    if ((*at)->pattern != wanted || (*at)->dtype != dtype || (*at)->count != count) continue;
    std::unique_ptr<Exchange> found = std::move(*at);
    spares_.erase(at);
    return found;
  }
  auto made = std::make_unique<Exchange>();
  Exchange& e = *made;
  e.pattern = wanted, e.dtype = dtype, e.count = count;
  const std::size_t R = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
  std::size_t most = 1;
  for (const auto& nodes : wanted->nodes) most = std::max(most, nodes.size());
  if (count > std::numeric_limits<int>::max() / static_cast<std::int64_t>(most * (gathers(e) ? 1 : R)))
    throw ValueError("mpi: exchange: MPI cannot count that many elements at once: " + std::to_string(count) +
                     "; cut them into smaller tensors");
  for (std::size_t r = 0; r < R; ++r) {
    const std::int64_t each = count / size_, more = count % size_;
    e.piece_counts.push_back(
        static_cast<int>(gathers(e) ? wanted->counts[r] : each + (static_cast<std::int64_t>(r) < more ? 1 : 0)));
  }
  e.piece_begins = begins_of(e.piece_counts);
  e.result.resize(bytes_of(count, dtype));
  if (gathers(e)) return made;
  const int own = static_cast<int>(wanted->nodes[me].size());
  for (std::size_t r = 0; r < R; ++r) {
    e.send_counts.push_back(r == me ? 0 : e.piece_counts[r] * own);
    e.receive_counts.push_back(e.piece_counts[me] * static_cast<int>(wanted->nodes[r].size()));
  }
  e.send_begins = begins_of(e.send_counts), e.receive_begins = begins_of(e.receive_counts);
  e.sent.resize(bytes_of(e.send_begins.back() + e.send_counts.back(), dtype));
  e.received.resize(bytes_of(e.receive_begins.back() + e.receive_counts.back(), dtype));
  e.receive_counts[me] = 0;  // this rank's own nodes do not pass through MPI
  return made;
}

std::int64_t Link::start(std::int64_t pattern, Dtype dtype, std::int64_t count,
                         const std::vector<const std::byte*>& given) {
  check_alive();
  const std::size_t R = static_cast<std::size_t>(size_), me = static_cast<std::size_t>(rank_);
  std::unique_ptr<Exchange> made = spare(pattern, dtype, count);
  Exchange& e = *made;
  if (!gathers(e)) {
    for (std::size_t r = 0; r < R; ++r) {
      std::byte* to = r == me ? e.received.data() + bytes_of(e.receive_begins[r], dtype)
                              : e.sent.data() + bytes_of(e.send_begins[r], dtype);
      for (const std::byte* node : given) {
        const std::size_t n = bytes_of(e.piece_counts[r], dtype);
        if (n) std::memcpy(to, node + bytes_of(e.piece_begins[r], dtype), n);
        to += n;
      }
    }
    e.stage = Exchange::Stage::scattering;
  } else {
    if (e.piece_counts[me] > 0)
      std::memcpy(e.result.data() + bytes_of(e.piece_begins[me], dtype), given[0], bytes_of(e.piece_counts[me], dtype));
    e.stage = Exchange::Stage::joined;
  }
  ++traffic_.exchanges;
  const std::size_t piece = bytes_of(e.piece_counts[me], dtype);
  traffic_.bytes_sent += static_cast<std::int64_t>(e.sent.size() + piece * (R - 1));
  traffic_.bytes_received += static_cast<std::int64_t>(
      e.received.size() - (gathers(e) ? 0 : piece * e.pattern->nodes[me].size()) + e.result.size() - piece);
  const std::int64_t ticket = next_ticket_++;
  exchanges_.emplace(ticket, std::move(made));
  if (!gathers(e))
    check(MPI_Ialltoallv(e.sent.data(), e.send_counts.data(), e.send_begins.data(), type_of(dtype), e.received.data(),
                         e.receive_counts.data(), e.receive_begins.data(), type_of(dtype), scatter_[e.pattern->channel],
                         &e.scatter),
          "exchange");
  poll();
  return ticket;
}

/// Joins all nodes for this rank's piece.
void Link::join_segments(Exchange& e) {
  const std::int64_t n = e.piece_counts[static_cast<std::size_t>(rank_)];
  const std::size_t bytes = bytes_of(n, e.dtype);
  std::vector<Leaves> all;
  for (const auto& nodes : e.pattern->nodes) all.insert(all.end(), nodes.begin(), nodes.end());
  std::size_t next = 0;
  const std::byte* const root = joined(
      all, {0, e.pattern->tree.leaves()}, next, [&](std::size_t i) { return e.received.data() + i * bytes; },
      [&](std::byte* a, const std::byte* b) { join_bytes(a, b, n, e.dtype, e.pattern->join); });
  if (bytes)
    std::memcpy(e.result.data() + bytes_of(e.piece_begins[static_cast<std::size_t>(rank_)], e.dtype), root, bytes);
  e.stage = Exchange::Stage::joined;
}

bool Link::gathers(const Exchange& e) { return e.pattern->join == Join::gather; }

void Link::advance(Exchange& e) {
  if (e.stage == Exchange::Stage::scattering && is_done(e.scatter, "exchange")) join_segments(e);
  if (e.stage == Exchange::Stage::gathering && is_done(e.gather, "exchange")) e.stage = Exchange::Stage::done;
}

void Link::poll() {
  bool earlier_gathers[kChannels] = {true, true};  // gatherings begin in the order of the tickets
  for (auto& [ticket, e] : exchanges_) {
    advance(*e);
    bool& may = earlier_gathers[static_cast<std::size_t>(e->pattern->channel)];
    if (e->stage == Exchange::Stage::scattering) may = false;
    if (e->stage != Exchange::Stage::joined || !may) {
      if (e->stage == Exchange::Stage::joined) may = false;
      continue;
    }
    e->stage = Exchange::Stage::gathering;
    check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, e->result.data(), e->piece_counts.data(),
                          e->piece_begins.data(), type_of(e->dtype), gather_[e->pattern->channel], &e->gather),
          "exchange");
  }
}

bool Link::drained() {
  poll();
  std::erase_if(exchanges_, [](const auto& e) { return e.second->stage == Exchange::Stage::done; });
  return exchanges_.empty();
}

void Link::finish(std::int64_t ticket, std::byte* result) {
  check_alive();
  const auto at = exchanges_.find(ticket);
  if (at == exchanges_.end())
    throw ValueError("mpi: exchange: there is none with the ticket " + std::to_string(ticket) +
                     "; each is waited for once");
  Exchange& e = *at->second;
  until(
      [&] {
        poll();
        return e.stage == Exchange::Stage::done;
      },
      "exchange");
  if (!e.result.empty()) std::memcpy(result, e.result.data(), e.result.size());
  spares_.push_back(std::move(at->second));
  exchanges_.erase(at);
  constexpr std::size_t kMostSpares = 64;
  if (spares_.size() > kMostSpares) spares_.pop_front();
}

// ---- links ---------------------------------------------------------------------------------------------

namespace {

constexpr int kAsk = 1, kHere = 2, kLeft = 3;  // tags of notes

struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Link>> links;
};
Registry& registry() {
  static Registry all;
  return all;
}

std::string text_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int r : ranks) text += (text.empty() ? "" : ", ") + std::to_string(r);
  return text;
}

}  // namespace

std::shared_ptr<Link> link_of(std::int64_t number) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::shared_ptr<Link> link;
  if (number >= 0 && number < static_cast<std::int64_t>(all.links.size()))
    link = all.links[static_cast<std::size_t>(number)].lock();
  if (!link)
    throw ValueError("mpi: the world of this program has ended: " + std::to_string(number) +
                     "; a compiled function that communicates must not outlive its mpi::World");
  return link;
}

std::int64_t number_of(const std::shared_ptr<Link>& link) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  for (std::size_t i = 0; i < all.links.size(); ++i)
    if (all.links[i].lock() == link) return static_cast<std::int64_t>(i);
  all.links.push_back(link);
  return static_cast<std::int64_t>(all.links.size()) - 1;
}

struct Link::Note {
  std::vector<int> words, begins;
  std::vector<std::byte> sent, bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

Link::Link(int* argc, char*** argv, std::chrono::milliseconds timeout) : timeout_(timeout) {
  int running = 0, ended = 0, level = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&ended);
  if (ended) throw ValueError("mpi::World: MPI has ended in this process; make one world in a program");
  if (!running) {
    check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &level), "start");
    started_mpi_ = true;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  MPI_Query_thread(&level);
  if (level < MPI_THREAD_SERIALIZED)
    throw ValueError("mpi::World: MPI runs with thread level " + std::to_string(level) +
                     "; start it with MPI_Init_thread and MPI_THREAD_SERIALIZED");
  const auto copy = [&](MPI_Comm& to) {
    check(MPI_Comm_dup(MPI_COMM_WORLD, &to), "start");
    MPI_Comm_set_errhandler(to, MPI_ERRORS_RETURN);
  };
  copy(direct_), copy(control_);
  for (int c = 0; c < kChannels; ++c) copy(scatter_[c]), copy(gather_[c]);
  MPI_Comm_rank(direct_, &rank_);
  MPI_Comm_size(direct_, &size_);
  MPI_Comm local = MPI_COMM_NULL;
  check(MPI_Comm_split_type(direct_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local), "start");
  MPI_Comm_rank(local, &local_rank_);
  MPI_Comm_size(local, &local_size_);
  MPI_Comm_free(&local);
}

Link::~Link() = default;

void Link::end(std::shared_ptr<Link> link, bool in_haste) {
  if (!link) return;
  bool well = !in_haste && link->failure_.empty();
  if (well) {
    try {
      link->barrier();  // while waiting, this rank answers what others still ask
      link->until([&] { return link->drained(); }, "end");
      link->until(
          [&] {
            std::erase_if(link->notes_, [&](const std::unique_ptr<Note>& n) {
              int done = 0;
              return MPI_Test(&n->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
            });
            return link->notes_.empty();
          },
          "end");
    } catch (const Error&) {
      well = false;
    }
  }
  if (!well || !link->exchanges_.empty()) {
    // MPI may still complete requests that are under way, so their memory stays for the rest of the process.
    static auto* const left = new std::vector<std::shared_ptr<Link>>;
    left->push_back(std::move(link));
    return;
  }
  for (MPI_Comm* c :
       {&link->direct_, &link->control_, &link->scatter_[0], &link->scatter_[1], &link->gather_[0], &link->gather_[1]})
    MPI_Comm_free(c);
  if (link->started_mpi_) MPI_Finalize();
}

void Link::check(int code, const std::string& operation) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  fail(operation, "MPI reports an error: " + std::string(text, static_cast<std::size_t>(length)), {});
}

void Link::check_alive() {
  if (!failure_.empty()) throw RankError(failure_, failed_operation_, failed_ranks_);
}

void Link::fail(const std::string& operation, const std::string& what, std::vector<int> ranks) {
  if (failure_.empty()) {
    failure_ = "mpi: rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ": " + operation + ": " + what;
    failed_operation_ = operation;
    failed_ranks_ = std::move(ranks);
    if (control_ != MPI_COMM_NULL)
      for (int r = 0; r < size_; ++r)
        if (r != rank_) send_note(r, kLeft, failed_ranks_);
  }
  throw RankError(failure_, failed_operation_, failed_ranks_);
}

void Link::until(const std::function<bool()>& done, const std::string& operation) {
  check_alive();
  const Clock::time_point begin = Clock::now();
  const auto asking = std::clamp<Clock::duration>(timeout_ / 4, std::chrono::milliseconds(5), std::chrono::seconds(5));
  for (unsigned turn = 1; !done(); ++turn) {
    if (turn < 64) continue;
    const Clock::duration waited = Clock::now() - begin;
    if (turn % 16 == 0) answer();
    if (waited > timeout_ - asking) diagnose(operation, begin + timeout_);
    if (waited < std::chrono::milliseconds(2)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(waited < std::chrono::milliseconds(50) ? 20 : 200));
    }
  }
}

/// Answers other ranks that ask whether this one is alive. Throws RankError when a rank has left.
void Link::answer() {
  if (size_ == 1) return;
  int there = 1;
  while (there) {
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_, &there, &status) != MPI_SUCCESS || !there) break;
    int n = 0;
    MPI_Get_count(&status, MPI_INT, &n);
    std::vector<int> words(static_cast<std::size_t>(n) + 1);
    if (MPI_Recv(words.data(), n, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, control_, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
      break;
    words.pop_back();
    if (status.MPI_TAG == kAsk) send_note(status.MPI_SOURCE, kHere, {});
    if (status.MPI_TAG == kHere && !answered_.empty()) answered_[static_cast<std::size_t>(status.MPI_SOURCE)] = 1;
    if (status.MPI_TAG == kLeft && failure_.empty()) {
      const std::string who = std::to_string(status.MPI_SOURCE);
      const bool known = !words.empty() && std::ranges::find(words, rank_) == words.end();
      const std::string why = !known                                         ? "it reported an error"
                              : words == std::vector<int>{status.MPI_SOURCE} ? "an exception ended its training"
                                                                             : "it found silent: " + text_of(words);
      fail("wait", "rank " + who + " has left the job: " + why + "; resume from the last checkpoint",
           known ? words : std::vector<int>{});
    }
  }
}

/// Sends a note without waiting; notes are small, and whether they arrive does not matter.
void Link::send_note(int to, int tag, const std::vector<int>& words) {
  auto note = std::make_unique<Note>();
  note->words = words;
  if (MPI_Isend(note->words.data(), static_cast<int>(words.size()), MPI_INT, to, tag, control_, &note->request) ==
      MPI_SUCCESS)
    notes_.push_back(std::move(note));
}

void Link::diagnose(const std::string& operation, Clock::time_point deadline) {
  answered_.assign(static_cast<std::size_t>(size_), 0);
  answered_[static_cast<std::size_t>(rank_)] = 1;
  for (int r = 0; r < size_; ++r)
    if (r != rank_) send_note(r, kAsk, {});
  while (Clock::now() < deadline && std::ranges::count(answered_, 0) > 0) {
    answer();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::vector<int> silent;
  for (int r = 0; r < size_; ++r)
    if (!answered_[static_cast<std::size_t>(r)]) silent.push_back(r);
  const std::string time = std::to_string(timeout_.count()) + " ms";
  if (silent.empty())
    fail(operation,
         "not all ranks take part within " + time +
             ", though all answer: 0 silent; make the same calls in the same order on every rank",
         {});
  fail(operation,
       "ranks do not answer within " + time + ": " + text_of(silent) +
           "; they have died, hang, or compute for longer than the timeout",
       silent);
}

bool Link::is_done(MPI_Request& request, const std::string& operation) {
  int done = 0;
  check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), operation);
  return done != 0;
}

/// Waits for a note whose request has begun. Its memory outlives an error, because MPI may read and write it later.
std::unique_ptr<Link::Note> Link::arrived(std::unique_ptr<Note> note, const std::string& operation) {
  Note& here = *note;
  notes_.push_back(std::move(note));
  until([&] { return is_done(here.request, operation); }, operation);
  const auto at = std::ranges::find_if(notes_, [&](const auto& other) { return other.get() == &here; });
  note = std::move(*at);
  notes_.erase(at);
  return note;
}

void Link::barrier() {
  check_alive();
  auto note = std::make_unique<Note>();
  check(MPI_Ibarrier(direct_, &note->request), "barrier");
  (void)arrived(std::move(note), "barrier");
}

void Link::broadcast(std::byte* bytes, std::size_t n, int root) {
  check_alive();
  if (size_ == 1) return;
  constexpr std::size_t kMost = std::size_t{1} << 28;
  for (std::size_t begin = 0; begin < n; begin += kMost) {
    const std::size_t count = std::min(kMost, n - begin);
    auto note = std::make_unique<Note>();
    note->bytes.assign(bytes + begin, bytes + begin + count);
    check(MPI_Ibcast(note->bytes.data(), static_cast<int>(count), MPI_BYTE, root, direct_, &note->request),
          "broadcast");
    note = arrived(std::move(note), "broadcast");
    std::ranges::copy(note->bytes, bytes + begin);
  }
}

void Link::gather(const std::byte* own, const std::vector<std::size_t>& counts, std::byte* all) {
  check_alive();
  const std::size_t mine = counts[static_cast<std::size_t>(rank_)];
  if (size_ == 1) {
    std::copy_n(own, mine, all);
    return;
  }
  std::size_t total = 0;
  for (const std::size_t n : counts) total += n;
  if (total > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw ValueError("mpi: gather: MPI cannot count that many bytes at once: " + std::to_string(total) +
                     "; use smaller batches");
  auto note = std::make_unique<Note>();
  note->sent.assign(own, own + mine);
  note->bytes.resize(total);
  for (std::size_t r = 0, begin = 0; r < counts.size(); begin += counts[r++]) {
    note->words.push_back(static_cast<int>(counts[r]));
    note->begins.push_back(static_cast<int>(begin));
  }
  check(MPI_Iallgatherv(note->sent.data(), static_cast<int>(mine), MPI_BYTE, note->bytes.data(), note->words.data(),
                        note->begins.data(), MPI_BYTE, direct_, &note->request),
        "gather");
  note = arrived(std::move(note), "gather");
  std::ranges::copy(note->bytes, all);
}

void Link::leave() noexcept {
  try {
    if (failure_.empty() && size_ > 1)
      fail("leave", "this rank has left the job by an exception; make no more calls", {rank_});
  } catch (...) {  // the caller's own exception says more
  }
}

// ---- exchanges that are recorded -----------------------------------------------------------------------

namespace {

using ferrite::define::Writer;

struct StartAttrs {
  std::int64_t link = 0, pattern = 0, total = 0;
  static constexpr auto fields = attr_list(attr("link", &StartAttrs::link), attr("pattern", &StartAttrs::pattern),
                                           attr("total", &StartAttrs::total));
};

/// The operation that begins an exchange: nodes [N] -> the ticket of their exchange, i64 [1].
struct Start {
  using Attributes = StartAttrs;
  static constexpr auto name = "mpi_start", onnx = "", stablehlo = "";
  static constexpr auto summary = "begins to join the operands with those of other ranks; gives a ticket";
  static constexpr Effects effects{.throws = true, .communicates = true, .allocates = true};

  static Specs infer(Inputs in, const Attributes&) {
    const Spec first = in[0].spec();
    if (first.shape.rank() != 1 ||
        (first.dtype != Dtype::f32 && first.dtype != Dtype::f64 && first.dtype != Dtype::i64))
      throw ShapeError("mpi_start: takes f32, f64 or i64 of rank 1, got " + first.str());
    for (const Tensor& x : in)
      if (!(x.spec() == first)) throw ShapeError("mpi_start: nodes differ: " + first.str() + " and " + x.spec().str());
    return {{{1}, Dtype::i64}};
  }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    Tensors nodes;
    std::vector<const std::byte*> given;
    for (const Tensor& x : in) nodes.push_back(contiguous(x));
    for (const Tensor& x : nodes) given.push_back(x.raw());
    *Writer::data<std::int64_t>(out[0]) = link_of(a.link)->start(a.pattern, in[0].dtype(), a.total, given);
  }
};

struct WaitAttrs {
  std::int64_t link = 0, total = 0;
  Dtype dtype = Dtype::f32;
  static constexpr auto fields =
      attr_list(attr("link", &WaitAttrs::link), attr("total", &WaitAttrs::total), attr("dtype", &WaitAttrs::dtype));
};

/// The operation that waits for an exchange: a ticket -> the joined elements [N].
struct Wait {
  using Attributes = WaitAttrs;
  static constexpr auto name = "mpi_wait", onnx = "", stablehlo = "";
  static constexpr auto summary = "what the exchange of a ticket gives, when it is there";
  static constexpr Effects effects{.throws = true, .communicates = true, .allocates = true};

  static Specs infer(Inputs, const Attributes& a) { return {{{a.total}, a.dtype}}; }
  static void eval(Inputs in, std::span<Tensor> out, const Attributes& a) {
    link_of(a.link)->finish(in[0].item<std::int64_t>(), Writer::raw(out[0]));
  }
};

}  // namespace

Route route_of(const std::shared_ptr<Link>& link, Pattern pattern) {
  return {number_of(link), link->add(std::move(pattern)), link->size() == 1};
}

Sent start(const Route& route, const Tensors& nodes, std::int64_t total) {
  Sent sent{.result = {{total}, nodes[0].dtype()}};
  if (route.alone) {
    sent.whole = nodes[0];
    return sent;
  }
  InlineVector<const Tensor*, 8> in;
  for (const Tensor& x : nodes) in.push_back(&x);
  sent.ticket =
      define::structured<Start>.apply({in.data(), in.size()}, StartAttrs{route.link, route.pattern, total})[0];
  return sent;
}

Tensor wait(const Route& route, const Sent& sent) {
  if (route.alone) return sent.whole;
  const Tensor* const in[] = {&sent.ticket};
  return define::structured<Wait>.apply(in, WaitAttrs{route.link, sent.result.shape[0], sent.result.dtype})[0];
}

Tensor exchanged(const Route& route, const Tensors& nodes) {
  return wait(route, start(route, nodes, nodes[0].numel()));
}

// ---- bytes and texts -----------------------------------------------------------------------------------

void broadcast_bytes(const World& world, std::vector<std::byte>& bytes, int root) {
  const Tensor size = Tensor::from({static_cast<std::int64_t>(bytes.size())});
  bytes.resize(static_cast<std::size_t>(world.broadcast(size, root).item<std::int64_t>()));
  world.link()->broadcast(bytes.data(), bytes.size(), root);
}

std::string first_text(const World& world, const std::string& own) {
  if (!world.any(!own.empty())) return {};
  int root = 0;
  while (!world.any(root == world.rank() && !own.empty())) ++root;
  std::vector<std::byte> bytes(own.size());
  std::ranges::transform(own, bytes.begin(), [](char c) { return static_cast<std::byte>(c); });
  broadcast_bytes(world, bytes, root);
  std::string text(bytes.size(), ' ');
  std::ranges::transform(bytes, text.begin(), [](std::byte b) { return static_cast<char>(b); });
  return text;
}

}  // namespace ferrite::mpi::detail
