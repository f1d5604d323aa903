/// The system as POSIX has it.
#include <fcntl.h>
#include <math.h>  // lgamma_r, which std does not name
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "ferrite/tensor/system/files.h"
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
double whole_power(double a, int n) noexcept { return std::pow(a, n); }

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

// ---- files ---------------------------------------------------------------------------------------------

namespace {

int open_file(const std::filesystem::path& path, OpenFor purpose) {
  constexpr int reading = O_RDONLY | O_CLOEXEC | O_NONBLOCK, writing = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  switch (purpose) {
    case OpenFor::reading: return ::open(path.c_str(), reading | O_NOCTTY);
    case OpenFor::reading_no_link: return ::open(path.c_str(), reading | O_NOFOLLOW);
    case OpenFor::creating: return ::open(path.c_str(), writing | O_NOFOLLOW, 0666);
    case OpenFor::creating_private: return ::open(path.c_str(), writing | O_NOFOLLOW, 0600);
    case OpenFor::appending: return ::open(path.c_str(), writing | O_APPEND, 0666);
    case OpenFor::folder: return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  return -1;
}

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::regular;
  if (S_ISDIR(mode)) return FileKind::folder;
  if (S_ISFIFO(mode)) return FileKind::fifo;
  if (S_ISCHR(mode) || S_ISBLK(mode)) return FileKind::device;
  return S_ISSOCK(mode) ? FileKind::socket : FileKind::other;
}
int told(int result, const struct stat& about, FileStatus& out) {
  if (result == 0)
    out = {.kind = kind_of(about.st_mode),
           .size = static_cast<std::uint64_t>(about.st_size),
           .names = about.st_nlink,
           .permissions = static_cast<std::uint32_t>(about.st_mode & 07777),
           .user = about.st_uid,
           .group = about.st_gid};
  return result;
}
int status(int fd, FileStatus& out) {
  struct stat about {};
  return told(::fstat(fd, &about), about, out);
}
void* map(std::size_t n, int fd) {
  void* const at = ::mmap(nullptr, n, PROT_READ, MAP_PRIVATE, fd, 0);
  return at == MAP_FAILED ? nullptr : at;
}
int permit(int fd, std::uint32_t permissions) { return ::fchmod(fd, static_cast<mode_t>(permissions)); }
int replace(const std::filesystem::path& from, const std::filesystem::path& to) {
  return std::rename(from.c_str(), to.c_str());
}

}  // namespace

SystemCalls& system_calls() noexcept {
  static SystemCalls calls = {open_file, status, ::read, ::write, permit, ::fsync, map, ::munmap, ::close, replace};
  return calls;
}

int status_of_path(const std::filesystem::path& path, FileStatus& out) {
  struct stat about {};
  return told(::lstat(path.c_str(), &about), about, out);
}
int lock_file(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB); }
int give_file(int fd, std::uint32_t user, std::uint32_t group) { return ::fchown(fd, user, group); }
int cut_file(int fd, std::uint64_t size) { return ::ftruncate(fd, static_cast<off_t>(size)); }
int remove_file(const std::filesystem::path& path) { return ::unlink(path.c_str()); }
std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
bool process_lives(int process) noexcept { return ::kill(process, 0) == 0 || errno != ESRCH; }

}  // namespace ferrite::detail
