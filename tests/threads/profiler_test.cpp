// Profiles over several threads: each has its own events, all are counted, and a profile read meanwhile is consistent.
#include "ferrite/tensor/profiler.h"

#include <atomic>
#include <set>
#include <thread>

#include "ferrite/dsl/builder.h"
#include "ferrite/nn/stream/stream.h"
#include "ferrite/tensor/threads.h"
#include "support/compare.h"
#include "support/trace.h"

using namespace ferrite;

namespace {

std::int64_t calls_of(const Profile& profile, const std::string& kernel) {
  for (const ProfileRow& r : profile.rows(ProfileBy::kernel))
    if (r.kernel == kernel) return r.calls;
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(profiler)

BOOST_AUTO_TEST_CASE(every_thread_has_its_own_track) {
  const dsl::Network net = dsl::sequence(4).gru(8).linear(3).build(1);
  net.eval();
  const Tensor x = ones({2, 5, 4});
  const auto fast = net.compiled();
  (void)net(x), (void)fast(x);
  Profile profile;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) (void)net(x), (void)fast(x);
    });
  for (int i = 0; i < 20; ++i) {  // read while it runs
    (void)profile.table();
    (void)support::complete(profile);
    std::this_thread::yield();
  }
  threads.clear();
  profile.stop();
  BOOST_TEST(profile.threads() == 4U);
  BOOST_TEST(calls_of(profile, "compiled") == 200);
  BOOST_TEST(calls_of(profile, "gru_sequence") == 400);
  std::map<std::string, std::int64_t> per_thread;
  for (const support::TraceEvent& e : support::complete(profile))
    per_thread[e.at("tid")] += e.at("name") == "gru_sequence";
  BOOST_TEST(per_thread.size() == 4U);
  for (const auto& [thread, calls] : per_thread) BOOST_TEST(calls == 100, thread);
}

BOOST_AUTO_TEST_CASE(profiles_come_and_go_while_threads_run) {
  const dsl::Network net = dsl::sequence(4).gru(8).linear(3).build(1);
  net.eval();
  const Tensor x = ones({2, 5, 4});
  std::atomic<bool> over = false;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      nn::Stream stream = net.stream();
      const std::vector<float> in(4, 1);
      std::vector<float> out(3);
      while (!over.load()) (void)net(x), stream.step(in, out);
    });
  for (int i = 0; i < 50; ++i) {
    Profile profile({.trace_events = 64});
    for (int k = 0; k < 20; ++k) std::this_thread::yield();
    if (i % 2) profile.stop();
    for (const ProfileRow& r : profile.rows()) BOOST_TEST((r.calls > 0 && r.self <= r.total));
  }
  over = true;
}

/// Work that threads of the pool share is one call of the thread that requested it.
BOOST_AUTO_TEST_CASE(work_of_the_pool_is_one_event) {
  set_threads(2);
  const Tensor x = ones({1 << 18});
  Profile profile;
  (void)exp(x);
  profile.stop();
  set_threads(1);
  BOOST_TEST(calls_of(profile, "exp") == 1);
  BOOST_TEST(profile.threads() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()
