/// Names temporary files, and removes those of processes that died.
#include "ferrite/io/file/stale_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <random>
#include <string_view>

#include "ferrite/io/file/system_calls.h"

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kLongestName = 190;

std::filesystem::path folder_of(const std::filesystem::path& target) {
  const std::filesystem::path folder = target.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

/// Different at every call in this process, and nearly certainly in all others; O_EXCL settles the rest.
std::uint32_t random_bits() {
  static std::atomic<std::uint32_t> next = std::random_device{}();
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  std::seed_seq mix{next.fetch_add(1), static_cast<std::uint32_t>(ticks), static_cast<std::uint32_t>(::getpid())};
  std::uint32_t bits[1];
  mix.generate(bits, bits + 1);
  return bits[0];
}

/// The process number in ".<name>.tmp.<pid>.<random>"; 0 where the name is not of that form.
int owner_of(std::string_view name, std::string_view stem) {
  if (!name.starts_with(stem)) return 0;
  name.remove_prefix(stem.size());
  const char* end = name.data() + name.size();
  int pid = 0;
  const auto number = std::from_chars(name.data(), end, pid);
  if (number.ec != std::errc{} || pid <= 0 || number.ptr == end || *number.ptr != '.') return 0;
  std::uint32_t random = 0;
  const auto rest = std::from_chars(number.ptr + 1, end, random, 16);
  return rest.ec == std::errc{} && rest.ptr == end ? pid : 0;
}

bool alive(int pid) { return ::kill(pid, 0) == 0 || errno != ESRCH; }

/// Opening what is not a regular file has effects: the writer at the other end of a FIFO would continue, without a
/// reader.
bool is_file(const std::filesystem::path& path) {
  struct stat about {};
  return ::lstat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode);
}

/// Removes a temporary file unless somebody holds a lock on it. Process numbers are used again, after a restart of a
/// container above all, so our own number proves nothing: the owner of a temporary file holds the lock as long as it
/// lives. The lock is kept while the file is removed, so that an owner who has just created it, but not locked it yet,
/// finds either the lock taken or the file gone, and takes another name.
void remove_unlocked(const std::filesystem::path& path) {
  if (!is_file(path)) return;
  const int fd = system_calls().open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
  if (fd < 0) return;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) ::unlink(path.c_str());
  ::close(fd);
}

}  // namespace

std::string temporary_stem(const std::filesystem::path& target) {
  std::string name = target.filename().string();
  if (name.size() > kLongestName) {
    std::size_t cut = kLongestName;
    while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xc0) == 0x80) --cut;
    name.resize(cut);
  }
  return "." + name + ".tmp.";
}

std::filesystem::path temporary_path(const std::filesystem::path& target) {
  char hex[8];
  const auto end = std::to_chars(hex, hex + sizeof(hex), random_bits(), 16).ptr;
  return folder_of(target) / (temporary_stem(target) + std::to_string(::getpid()) + "." + std::string(hex, end));
}

void remove_stale(const std::filesystem::path& target) noexcept {
  try {
    const std::string stem = temporary_stem(target);
    std::error_code ignored;
    std::filesystem::directory_iterator entries(folder_of(target), ignored);
    for (; !ignored && entries != std::filesystem::directory_iterator{}; entries.increment(ignored)) {
      const std::filesystem::path& path = entries->path();
      const int pid = owner_of(path.filename().native(), stem);
      if (pid != 0 && (pid == ::getpid() || !alive(pid))) remove_unlocked(path);
    }
  } catch (...) {
    return;
  }
}

}  // namespace ferrite::io::detail
