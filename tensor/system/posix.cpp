/// The system as POSIX has it.
#include <math.h>  // lgamma_r, which std does not name
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "ferrite/tensor/system/system.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ferrite::detail {

void* allocate_lines(std::size_t bytes) noexcept { return std::aligned_alloc(64, bytes); }
void free_lines(void* block) noexcept { std::free(block); }
void trim_free_memory() noexcept {
#if defined(__GLIBC__)
  (void)malloc_trim(0);
#endif
}

void after_fork(void (*f)()) { pthread_atfork(nullptr, nullptr, f); }

double log_gamma(double x) noexcept {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}

int process_number() noexcept { return ::getpid(); }
int terminal_columns() noexcept {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  }
  return 0;
}
bool is_terminal(bool error) noexcept { return ::isatty(error ? STDERR_FILENO : STDOUT_FILENO) != 0; }
std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace ferrite::detail
