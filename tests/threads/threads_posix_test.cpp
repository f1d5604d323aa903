/// Threads of a process that may have few, and of a forked one.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "ferrite/tensor/threads.h"
#include "support/compare.h"
#include "support/sanitized.h"

using namespace ferrite;
using support::says;

namespace {

bool a_loop_is_whole() {
  std::atomic<int> count{0};
  detail::parallel_for(100, [&](std::int64_t) { ++count; });
  return count == 100;
}

/// Requests many threads in a process whose memory fits the stacks of a few dozen; returns 0, or what went wrong.
int ask_for_too_many() {
  const rlimit limit{std::size_t{1} << 30, std::size_t{1} << 30};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  const int before = thread_count();
  try {
    set_threads(1000);
    return 2;
  } catch (const ValueError& e) {
    if (!says("set_threads: the system gives no more threads: wanted 1000")(e)) return 3;
  }
  if (thread_count() != before || !a_loop_is_whole()) return 4;
  set_threads(3);
  return thread_count() == 3 && a_loop_is_whole() ? 0 : 5;
}

/// Returns what f returns in a process forked from this one, or -1 if it does not end within 60 seconds.
int forked(int (*f)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(f());
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads_of_processes)

BOOST_AUTO_TEST_CASE(more_threads_than_the_system_gives_are_refused) {
  if (!support::kSanitized) BOOST_TEST(forked(ask_for_too_many) == 0);  // a sanitizer maps more memory than allowed
}

BOOST_AUTO_TEST_CASE(a_forked_process_has_threads_of_its_own) {
  set_threads(3);
  BOOST_TEST(a_loop_is_whole());
  if (!support::kSanitized)
    BOOST_TEST(forked([] {
                 if (!a_loop_is_whole()) return 1;
                 set_threads(4);
                 return a_loop_is_whole() ? 0 : 2;
               }) == 0);
  set_threads(1);
}

BOOST_AUTO_TEST_SUITE_END()
