// Memory of tensors that one thread makes and another frees, of threads that have ended, and its limits.
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::identical;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A queue of few tensors between two threads.
class Queue {
 public:
  explicit Queue(std::size_t most) : most_(most) {}
  void put(Tensor t) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return list_.size() < most_; });
    list_.push_back(std::move(t));
    changed_.notify_all();
  }
  Tensor take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !list_.empty(); });
    Tensor t = std::move(list_.front());
    list_.pop_front();
    changed_.notify_all();
    return t;
  }

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Tensor> list_;
};

std::vector<Tensor> some(int n, std::int64_t elements) {
  std::vector<Tensor> list;
  for (int i = 0; i < n; ++i) list.push_back(full({elements}, i));
  return list;
}

template <class F>
void on_a_thread(F&& f) {
  std::thread(std::forward<F>(f)).join();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pool)

/// The thread makes 20,000 tensors of 40 KB, eight of them alive at a time.
BOOST_AUTO_TEST_CASE(a_thread_that_makes_tensors_for_another_does_not_grow) {
  constexpr int n = 20000;
  Queue queue(8);
  std::uint64_t misses = 0;
  std::size_t makers = 0, freers = 0;
  std::thread maker([&] {
    for (int i = 0; i < n; ++i) queue.put(full({10000}, i));
    misses = pool_counts().misses;
    makers = cached_memory();
  });
  std::thread freer([&] {
    for (int i = 0; i < n; ++i) (void)queue.take();
    freers = cached_memory();
  });
  maker.join();
  freer.join();
  BOOST_TEST(misses <= 64U);
  BOOST_TEST(makers <= 2 * kMiB);
  BOOST_TEST(freers <= kMiB);
}

BOOST_AUTO_TEST_CASE(views_and_lists_end_on_other_threads) {
  Queue queue(4);
  std::thread maker([&] {
    for (int i = 0; i < 2000; ++i) queue.put(concat(split(full({64}, i), 1)));
  });
  for (int i = 0; i < 2000; ++i) BOOST_REQUIRE(identical(queue.take(), full({64}, i)));
  maker.join();
}

BOOST_AUTO_TEST_CASE(tensors_outlive_their_thread) {
  std::vector<Tensor> made;
  on_a_thread([&] { made = some(100, 1000); });
  const std::size_t before = cached_memory();
  BOOST_TEST(identical(made[42], full({1000}, 42)));
  made.clear();
  BOOST_TEST(cached_memory() <= before + 100 * 1024);  // what the comparison made, not its operands
}

/// A thread takes over the pool of one that has ended, and the tensors of it that still live.
BOOST_AUTO_TEST_CASE(threads_begin_and_end_with_tensors_alive) {
  std::vector<Tensor> left;
  for (int i = 0; i < 50; ++i)
    on_a_thread([&, i] {
      left = some(20, 500 + i);  // those of the previous thread are freed here
      BOOST_REQUIRE(identical(left[7] + 1, full({500 + i}, 8)));
    });
  BOOST_TEST(identical(left[3], full({549}, 3)));
}

/// Each thread of a ring reads and frees what the previous one has made.
BOOST_AUTO_TEST_CASE(all_threads_free_what_others_have_made) {
  constexpr std::size_t ring = 4;
  const int rounds = support::unless_sanitized(2000, 200);
  std::deque<Queue> queues;
  for (std::size_t k = 0; k < ring; ++k) queues.emplace_back(std::size_t{3});
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> all;
    for (std::size_t k = 0; k < ring; ++k)
      all.emplace_back([&, k] {
        for (int i = 0; i < rounds; ++i) {
          queues[k].put(full({1 + i % 300}, i));
          const Tensor t = queues[(k + 1) % ring].take();
          if (t.numel() != 1 + i % 300 || t.values<float>()[0] != static_cast<float>(i)) ++wrong;
        }
        wrong += cached_memory() > 8 * kMiB;
      });
  }
  BOOST_TEST(wrong == 0);
}

/// Another thread frees 192 MiB at once, and the thread that made them allocates nothing more.
BOOST_AUTO_TEST_CASE(what_waits_for_a_thread_is_bounded) {
  std::vector<Tensor> made;
  std::mutex mutex;
  std::condition_variable changed;
  int stage = 0;
  const auto reach = [&](int next) {
    const std::lock_guard lock(mutex);
    stage = next;
    changed.notify_all();
  };
  const auto wait_for = [&](int wanted) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stage == wanted; });
  };
  std::size_t waiting = 0, left = 0;
  std::thread maker([&] {
    made = some(192, 1 << 18);
    reach(1);
    wait_for(2);
    waiting = cached_memory();
    trim();
    left = cached_memory();
  });
  wait_for(1);
  made.clear();
  reach(2);
  maker.join();
  BOOST_TEST(waiting <= 64 * kMiB);
  BOOST_TEST(left == 0U);
}

BOOST_AUTO_TEST_CASE(trim_gives_back_what_is_held) {
  on_a_thread([] {
    (void)(ones({1 << 20}) + 1);
    (void)select(ones({2}), 0, 0);
    trim();
    BOOST_TEST(cached_memory() == 0U);
    BOOST_TEST(identical(ones({3}) + 1, full({3}, 2)));  // the pool still works
  });
}

BOOST_AUTO_TEST_CASE(a_limit_on_what_a_thread_holds) {
  const std::size_t before = cache_limit();
  on_a_thread([] {
    set_cache_limit(kMiB);
    (void)some(40, 1 << 16);                          // 10 MiB
    BOOST_TEST(cached_memory() <= kMiB + 64 * 1024);  // and views
    (void)some(2, 1 << 16);
    set_cache_limit(0);
    BOOST_TEST(cached_memory() == 0U);
    BOOST_TEST(identical(ones({3}) + 1, full({3}, 2)));
  });
  set_cache_limit(before);
}

/// A full pool gives up blocks that were used once for those used now.
BOOST_AUTO_TEST_CASE(a_full_pool_holds_what_is_used_now) {
  const std::size_t before = cache_limit();
  on_a_thread([] {
    set_cache_limit(8 * kMiB);
    (void)some(60, 1 << 15);  // 7.5 MiB of one size, never used again
    (void)some(20, 1 << 16);  // 5 MiB of another
    const std::uint64_t missed = pool_counts().misses;
    for (int i = 0; i < 5; ++i) (void)some(20, 1 << 16);
    BOOST_TEST(pool_counts().misses == missed);
    BOOST_TEST(cached_memory() <= 8 * kMiB + 64 * 1024);
  });
  set_cache_limit(before);
}

BOOST_AUTO_TEST_SUITE_END()
