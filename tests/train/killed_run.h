#pragma once
/// Runs `fit` in a process that is killed at named moments.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string_view>

#include "ferrite/tensor/system/files.h"

namespace train_test {

/// The moments at which a run may be killed.
enum class Moment : std::uint8_t {
  start,       ///< the parts are built, fit has not begun
  example,     ///< a loader's thread makes an example
  batch,       ///< an update has been made
  validation,  ///< validation has begun, and the averages replace the weights
  validated,   ///< validation has ended
  saving,      ///< a checkpoint is being put together
  open,        ///< its temporary file is about to be created
  write,       ///< the bytes of the file are about to be written
  half_write,  ///< half of the bytes are written
  flush,       ///< the bytes are about to be flushed
  rename,      ///< the temporary file is about to be renamed
  renamed,     ///< the new file is in place
  end,         ///< training has ended
};
constexpr std::size_t kMoments = 13;
constexpr std::array<std::string_view, kMoments> kMomentNames = {
    "start", "example",    "batch", "validation", "validated", "saving", "open",
    "write", "half_write", "flush", "rename",     "renamed",   "end"};

/// Ends the process by SIGKILL when a moment comes for the n-th time.
class Death {
 public:
  Death(Moment moment, int n) : moment_(moment), left_(n) {}
  void pass(Moment moment) {
    if (moment == moment_ && --left_ == 0) ::kill(::getpid(), SIGKILL);
  }

 private:
  Moment moment_;
  std::atomic<int> left_;
};

/// Returns the one object of this process: the hooks of system calls take no other argument.
inline Death*& death() {
  static Death* of_process = nullptr;
  return of_process;
}
inline void pass(Moment moment) {
  if (death()) death()->pass(moment);
}

/// Makes saving report its steps. Only for a child: it is never undone.
inline void watch_saving() {
  static const ferrite::detail::SystemCalls real = ferrite::detail::system_calls();
  auto& calls = ferrite::detail::system_calls();
  calls.open = [](const std::filesystem::path& path, ferrite::detail::OpenFor purpose) {
    using ferrite::detail::OpenFor;
    if (purpose == OpenFor::creating || purpose == OpenFor::creating_private) pass(Moment::open);
    return real.open(path, purpose);
  };
  calls.write = [](int fd, const void* bytes, std::size_t n) {
    pass(Moment::write);
    const std::ptrdiff_t put = real.write(fd, bytes, n > 1 ? n / 2 : n);
    pass(Moment::half_write);
    return put;
  };
  calls.flush = [](int fd) {
    pass(Moment::flush);
    return real.flush(fd);
  };
  calls.replace = [](const std::filesystem::path& from, const std::filesystem::path& to) {
    pass(Moment::rename);
    const int result = real.replace(from, to);
    pass(Moment::renamed);
    return result;
  };
}

/// Calls `work` in a child that dies when `moment` comes for the n-th time. Returns false if it finished before.
inline bool died_at(Moment moment, int n, const std::function<void()>& work) {
  const pid_t child = ::fork();
  BOOST_REQUIRE(child >= 0);
  if (child == 0) {
    Death of_child(moment, n);
    death() = &of_child;
    watch_saving();
    try {
      work();
    } catch (const std::exception& e) {
      (void)!::write(STDERR_FILENO, e.what(), std::strlen(e.what()));
      ::_exit(1);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  BOOST_REQUIRE((killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)));
  return killed;
}

}  // namespace train_test
