#pragma once
/// Kills a child once it has come far enough, judged by what it has done, not by the clock.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>

namespace io_test {

/// Runs work(tell) in a child, which is killed after it has called tell() `steps` times, wherever it is then. It must
/// not end by itself.
inline void kill_after(int steps, const std::function<void(const std::function<void()>&)>& work) {
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    work([&] {
      const char done = 1;
      if (::write(ends[1], &done, 1) != 1) ::_exit(1);
    });
    ::_exit(2);
  }
  ::close(ends[1]);
  char done = 0;
  int told = 0;
  while (told < steps && ::read(ends[0], &done, 1) == 1) ++told;
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(ends[0]);
  BOOST_REQUIRE(told == steps);
  BOOST_REQUIRE(WIFSIGNALED(status));
  BOOST_REQUIRE(WTERMSIG(status) == SIGKILL);
}

}  // namespace io_test
