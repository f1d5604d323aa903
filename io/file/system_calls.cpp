/// The table of system calls that reading and saving use.
#include "ferrite/io/file/system_calls.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>

namespace ferrite::io::detail {
namespace {

int open_file(const char* path, int flags, mode_t mode) { return ::open(path, flags, mode); }
int stat_file(int fd, struct stat* out) { return ::fstat(fd, out); }

}  // namespace

SystemCalls& system_calls() noexcept {
  static SystemCalls calls = {open_file, stat_file, ::read,   ::write, ::fchmod,
                              ::fsync,   ::mmap,    ::munmap, ::close, std::rename};
  return calls;
}

}  // namespace ferrite::io::detail
