/// The pool of threads, and how work is divided among them.
#include "ferrite/tensor/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ferrite/tensor/denormals.h"
#include "ferrite/tensor/error.h"
#include "ferrite/tensor/system/per_thread.h"
#include "ferrite/tensor/system/system.h"

namespace ferrite {
namespace detail {
namespace {

constexpr int kMostThreads = 1024;
std::atomic<int> wanted_threads{1};
FERRITE_PER_THREAD constinit PerThread<bool> inside(false);

/// Hints to the processor that its thread waits.
void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// One parallel loop. Each thread has a share of adjacent indices, the same in every loop of the same length, so that
/// it finds in its caches what it wrote before; a thread that has finished takes indices from the others' shares.
struct Loop {
  Loop(LoopBody body, std::int64_t count, int threads)
      : f(body), n(count), shares(std::min(threads, kMostShares)), denormals(denormal_mode()) {
    for (int k = 0; k < shares; ++k) share[k].next = n * k / shares;
  }

  void work(int thread) noexcept {
    for (int k = 0; k < shares; ++k) {
      const int at = (thread + k) % shares;
      const std::int64_t end = n * (at + 1) / shares;
      for (std::int64_t i = share[at].next.fetch_add(1); i < end; i = share[at].next.fetch_add(1)) {
        try {
          f(i);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!error) error = std::current_exception();
        }
      }
    }
  }

  static constexpr int kMostShares = 32;
  struct alignas(64) Share {
    std::atomic<std::int64_t> next;
  };
  LoopBody f;
  std::int64_t n;
  int shares;
  std::uint64_t denormals;  ///< mode of the caller, in which helpers compute
  Share share[kMostShares];
  std::mutex mutex;
  std::exception_ptr error;
};

/// Waits awake for a condition, a little longer than the time between two loops of a training step: waking a thread
/// takes as long as a small loop. Does not wait where threads may share a processor. Returns whether the condition
/// holds.
template <class F>
bool soon(const F& condition) {
  constexpr std::chrono::microseconds kAwake(100);
  static const bool several = std::thread::hardware_concurrency() > 1;
  if (!several) return condition();
  const auto end = std::chrono::steady_clock::now() + kAwake;
  do {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return condition();
}

/// Helpers that wait for a loop, awake at first, then asleep. Only one loop runs at a time; a second caller works
/// alone.
class Pool {
 public:
  /// Ensures at least `helpers` helpers. Where the system provides fewer, ends those that were begun, and throws.
  void grow(int helpers) {
    const std::lock_guard growing(growing_);
    const std::size_t before = helpers_.size();
    try {
      while (static_cast<int>(helpers_.size()) < helpers)
        helpers_.emplace_back(
            [this, own = static_cast<int>(helpers_.size()) + 1](const std::stop_token& stop) { live(stop, own); });
    } catch (const std::system_error& e) {
      const std::size_t given = helpers_.size();
      helpers_.resize(before);
      throw ValueError("set_threads: the system gives no more threads: wanted " + std::to_string(helpers + 1) +
                       ", got " + std::to_string(given + 1) + ": " + e.what());
    }
  }

  /// Runs the loop with up to `helpers` more threads; false when another loop is running.
  bool run(Loop& loop, int helpers) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return false;
    {
      const std::lock_guard lock(mutex_);
      loop_ = &loop;
      most_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    loop.work(0);
    {
      const std::lock_guard lock(mutex_);
      loop_ = nullptr;
    }
    if (soon([&] { return busy_.load(std::memory_order_acquire) == 0; })) return true;
    std::unique_lock lock(mutex_);
    done_.wait(lock, [&] { return busy_ == 0; });
    return true;
  }

 private:
  /// Runs the helper thread with this number; callers of loops are number 0.
  void live(const std::stop_token& stop, int own) {
    inside() = true;
    set_denormal_mode(0);  // a thread begins in the mode of the one that started it
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return loop_ && round_ != seen && own <= most_; })) {
      seen = round_;
      Loop* loop = loop_;
      ++busy_;
      lock.unlock();
      set_denormal_mode(loop->denormals);
      loop->work(own);
      set_denormal_mode(0);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
      lock.unlock();
      soon([&] { return round_.load(std::memory_order_relaxed) != seen || stop.stop_requested(); });
      lock.lock();
    }
  }

  std::mutex growing_;
  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Loop* loop_ = nullptr;
  std::atomic<std::uint64_t> round_ = 0;
  int most_ = 0;                       ///< the last helper that may take part
  std::atomic<int> busy_ = 0;          ///< helpers in the loop
  std::vector<std::jthread> helpers_;  // last: joined before the other members are destroyed
};

/// Returns the pool of this process. A process forked from one with helpers has none of them: it begins with a new
/// pool, and the remains of the old one stay untouched.
Pool& pool() {
  static std::unique_ptr<Pool> current;
  static const bool begun = [] {
    current = std::make_unique<Pool>();
    detail::after_fork([] { (void)current.release(), current = std::make_unique<Pool>(); });
    return true;
  }();
  (void)begun;
  return *current;
}

}  // namespace

void parallel_for(std::int64_t n, LoopBody f) {
  const int threads = wanted_threads.load(std::memory_order_relaxed);
  if (threads <= 1 || n <= 1 || inside()) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  Loop loop(f, n, threads);
  inside() = true;
  if (!pool().run(loop, threads - 1)) loop.work(0);
  inside() = false;
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace detail

void set_threads(int n) {
  if (n < 1) throw ValueError("set_threads: at least one thread is needed, got " + std::to_string(n));
  if (n > detail::kMostThreads)
    throw ValueError("set_threads: at most " + std::to_string(detail::kMostThreads) + " threads, got " +
                     std::to_string(n));
  if (n > 1) detail::pool().grow(n - 1);
  detail::wanted_threads.store(n, std::memory_order_relaxed);
}

int thread_count() { return detail::wanted_threads.load(std::memory_order_relaxed); }

}  // namespace ferrite
