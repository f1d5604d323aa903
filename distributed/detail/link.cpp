/// MPI's start and end, waiting with a deadline, and the questions that ranks ask each other after one.
#include "ferrite/distributed/detail/link.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include "ferrite/distributed/detail/exchange.h"
#include "ferrite/distributed/world.h"

namespace ferrite::mpi::detail {
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
      link->barrier();  // what others still ask is answered
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
    // Requests are under way that MPI may still complete: what they point to stays for the rest of the process.
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

/// Answers other ranks that ask whether this one is here, and ends with them where one has left.
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

/// Notes are small and are sent without waiting; whether they arrive does not matter.
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

/// Waits for a note whose request has begun. Its blocks outlive an error: MPI may read and write them later.
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
    throw ValueError("mpi: gather: MPI cannot count so many bytes at once: " + std::to_string(total) +
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
  } catch (...) {  // what the caller throws says more
  }
}

}  // namespace ferrite::mpi::detail
