#include "ferrite/tensor/threads.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ferrite/tensor/detail/float_mode.h"
#include "ferrite/tensor/error.h"

namespace ferrite {
namespace detail {
namespace {

std::atomic<int> wanted_threads{1};
thread_local bool inside = false;

/// One parallel loop: indices are handed out one by one.
struct Loop {
  const LoopBody* f = nullptr;
  std::int64_t n = 0;
  std::uint64_t denormals = denormal_mode();  ///< of the caller; helpers compute in it
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;

  void work() noexcept {
    for (std::int64_t i = next.fetch_add(1); i < n; i = next.fetch_add(1)) {
      try {
        (*f)(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
    }
  }
};

/// Helpers that sleep until there is a loop. Only one loop runs at a time; a second caller works alone.
class Pool {
 public:
  /// Runs the loop with up to `helpers` more threads; false when another loop is running.
  bool run(Loop& loop, int helpers) {
    const std::unique_lock turn(turn_, std::try_to_lock);
    if (!turn.owns_lock()) return false;
    grow(helpers);
    {
      const std::lock_guard lock(mutex_);
      loop_ = &loop;
      seats_ = helpers;
      ++round_;
    }
    wake_.notify_all();
    loop.work();
    std::unique_lock lock(mutex_);
    loop_ = nullptr;
    done_.wait(lock, [&] { return busy_ == 0; });
    return true;
  }

 private:
  void grow(int helpers) {
    while (static_cast<int>(helpers_.size()) < helpers)
      helpers_.emplace_back([this](const std::stop_token& stop) { live(stop); });
  }

  void live(const std::stop_token& stop) {
    inside = true;
    set_denormal_mode(0);  // a thread begins in the mode of the one that started it
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return loop_ && round_ != seen && seats_ > 0; })) {
      seen = round_;
      Loop* loop = loop_;
      --seats_;
      ++busy_;
      lock.unlock();
      set_denormal_mode(loop->denormals);
      loop->work();
      set_denormal_mode(0);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  Loop* loop_ = nullptr;
  std::uint64_t round_ = 0;
  int seats_ = 0;
  int busy_ = 0;
  std::vector<std::jthread> helpers_;  // last: joined before the rest goes
};

Pool& pool() {
  static Pool p;
  return p;
}

}  // namespace

void parallel_for(std::int64_t n, LoopBody f) {
  const int threads = wanted_threads.load(std::memory_order_relaxed);
  if (threads <= 1 || n <= 1 || inside) {
    for (std::int64_t i = 0; i < n; ++i) f(i);
    return;
  }
  Loop loop;
  loop.f = &f;
  loop.n = n;
  inside = true;
  if (!pool().run(loop, threads - 1)) loop.work();
  inside = false;
  if (loop.error) std::rethrow_exception(loop.error);
}

}  // namespace detail

void set_threads(int n) {
  if (n < 1) throw ValueError("set_threads: at least one thread is needed, got " + std::to_string(n));
  detail::wanted_threads.store(n, std::memory_order_relaxed);
}

int threads() { return detail::wanted_threads.load(std::memory_order_relaxed); }

}  // namespace ferrite
