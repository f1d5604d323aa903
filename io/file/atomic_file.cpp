/// Saves files so that an old one is replaced as a whole or not at all: temporary files, the removal of abandoned ones,
/// and text files.
#include "ferrite/io/atomic_file.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/input_file.h"
#include "ferrite/io/text_file.h"
#include "ferrite/tensor/system/files.h"
#include "ferrite/tensor/system/system.h"

namespace ferrite::io {

using ferrite::detail::FileKind;
using ferrite::detail::FileStatus;
using ferrite::detail::give_file;
using ferrite::detail::lock_file;
using ferrite::detail::OpenFor;
using ferrite::detail::process_lives;
using ferrite::detail::process_number;
using ferrite::detail::remove_file;
using ferrite::detail::status_of_path;
using ferrite::detail::system_calls;

}  // namespace ferrite::io

// ---- temporary files -----------------------------------------------------------------------------------

namespace ferrite::io::detail {
namespace {

constexpr std::size_t kLongestName = 190;

std::filesystem::path folder_of(const std::filesystem::path& target) {
  const std::filesystem::path folder = target.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

/// Returns bits that differ at every call in this process, and almost certainly from other processes; O_EXCL excludes
/// the rest.
std::uint32_t random_bits() {
  static std::atomic<std::uint32_t> next = std::random_device{}();
  const auto ticks = std::chrono::steady_clock::now().time_since_epoch().count();
  std::seed_seq mix{next.fetch_add(1), static_cast<std::uint32_t>(ticks), static_cast<std::uint32_t>(process_number())};
  std::uint32_t bits[1];
  mix.generate(bits, bits + 1);
  return bits[0];
}

/// Returns the process number in ".<name>.tmp.<pid>.<random>", or 0 where the name has another form.
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

/// Returns whether a path is a regular file. Opening others has effects: the writer at the other end of a FIFO would
/// continue, without a reader.
bool is_file(const std::filesystem::path& path) {
  FileStatus about;
  return status_of_path(path, about) == 0 && about.kind == FileKind::regular;
}

/// Removes a temporary file unless a process holds a lock on it. Process numbers are reused, above all after a restart
/// of a container, so a number proves nothing: the owner of a temporary file holds the lock as long as it lives. The
/// lock is kept while the file is removed, so that an owner that has just created it, but not locked it yet, finds
/// either the lock taken or the file gone, and takes another name.
void remove_unlocked(const std::filesystem::path& path) {
  if (!is_file(path)) return;
  const int fd = system_calls().open(path, OpenFor::reading_no_link);
  if (fd < 0) return;
  if (lock_file(fd) == 0) remove_file(path);
  system_calls().close(fd);
}

/// Returns ".<name>.tmp.", the name cut so that a temporary name stays below the 255 bytes that file systems allow.
std::string temporary_stem(const std::filesystem::path& target) {
  std::string name = target.filename().string();
  if (name.size() > kLongestName) {
    std::size_t cut = kLongestName;
    while (cut > 0 && (static_cast<unsigned char>(name[cut]) & 0xc0) == 0x80) --cut;
    name.resize(cut);
  }
  return "." + name + ".tmp.";
}

/// Returns a name in the target's folder that no living process uses.
std::filesystem::path temporary_path(const std::filesystem::path& target) {
  char hex[8];
  const auto end = std::to_chars(hex, hex + sizeof(hex), random_bits(), 16).ptr;
  return folder_of(target) / (temporary_stem(target) + std::to_string(process_number()) + "." + std::string(hex, end));
}

/// Removes the temporary files of a target whose processes have died. Never throws: another save will try again.
void remove_stale(const std::filesystem::path& target) noexcept {
  try {
    const std::string stem = temporary_stem(target);
    std::error_code ignored;
    std::filesystem::directory_iterator entries(folder_of(target), ignored);
    for (; !ignored && entries != std::filesystem::directory_iterator{}; entries.increment(ignored)) {
      const std::filesystem::path& path = entries->path();
      const int pid = owner_of(path.filename().string(), stem);
      if (pid != 0 && (pid == process_number() || !process_lives(pid))) remove_unlocked(path);
    }
  } catch (...) {
    return;
  }
}

}  // namespace

}  // namespace ferrite::io::detail

// ---- saving --------------------------------------------------------------------------------------------

namespace ferrite::io {

using detail::refuse;
using detail::refuse_errno;

/// The file that was at the target before.
struct AtomicFile::Old {
  bool exists = false;
  FileStatus about{};
};

namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
constexpr int kMostLinks = 40;
constexpr int kMostNames = 100;

/// Returns the file at the end of a chain of symbolic links, whether it exists or not.
std::filesystem::path without_links(std::filesystem::path path, const std::string& where) {
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  refuse_errno(where, "cannot save the file", ELOOP);
}

int retried_flush(int fd) {
  int result = 0;
  do {
    result = system_calls().flush(fd);
  } while (result != 0 && errno == EINTR);
  return result;
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& target) : where_(detail::shown(target)) {
  if (target.native().find('\0') != std::string::npos) refuse(where_, "the path holds a NUL");
  if (!target.has_filename()) refuse(where_, "the path names no file: it is empty or ends in a separator");
  target_ = without_links(target, where_);
  folder_ = target_.parent_path().empty() ? std::filesystem::path(".") : target_.parent_path();
  Old old;
  old.exists = status_of_path(target_, old.about) == 0;
  if (!old.exists && errno != ENOENT) refuse_errno(where_, "cannot save the file", errno);
  if (old.exists && old.about.kind == FileKind::folder) refuse(where_, "cannot save the file: it is a folder");
  if (old.exists && old.about.kind != FileKind::regular)
    refuse(where_, "cannot save the file: it is not a regular file");
  detail::remove_stale(target_);
  create(old);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) system_calls().close(fd_);
  if (!temporary_.empty()) remove_file(temporary_);
}

void AtomicFile::create(const Old& old) {
  for (int i = 0; i < kMostNames; ++i) {
    if (!try_create(!old.exists)) continue;
    try {
      if (old.exists) keep_mode(old);
    } catch (...) {
      system_calls().close(std::exchange(fd_, -1));
      remove_file(temporary_);
      throw;
    }
    return;
  }
  refuse(where_, "cannot create a temporary file in the same folder: every name is taken");
}

/// Creates the temporary file. Returns false when another name should be tried. If `shared`, it gets the permissions of
/// new files, else only its owner's.
bool AtomicFile::try_create(bool shared) {
  const std::filesystem::path path = detail::temporary_path(target_);
  const int fd = system_calls().open(path, shared ? OpenFor::creating : OpenFor::creating_private);
  if (fd < 0 && (errno == EEXIST || errno == EINTR)) return false;
  if (fd < 0) refuse_errno(where_, "cannot create a temporary file in the same folder", errno);
  fd_ = fd;
  temporary_ = path;
  if (claim()) return true;
  system_calls().close(std::exchange(fd_, -1));
  remove_file(temporary_);
  temporary_.clear();
  return false;
}

/// Locks the temporary file, which shows other saves that it is in use. Returns false when one of them considered it
/// stale between its creation and the lock. On file systems without locks it returns true.
bool AtomicFile::claim() const {
  if (lock_file(fd_) != 0) return errno != EWOULDBLOCK;
  FileStatus about;
  return system_calls().status(fd_, about) != 0 || about.names > 0;
}

void AtomicFile::keep_mode(const Old& old) {
  FileStatus about;
  const bool other =
      system_calls().status(fd_, about) == 0 && (about.user != old.about.user || about.group != old.about.group);
  const bool refused = other && give_file(fd_, old.about.user, old.about.group) != 0;
  const std::uint32_t kept = refused ? 0700 : 0777;  // no access for a group or world that the old owner did not mean
  if (system_calls().permit(fd_, old.about.permissions & kept) != 0)
    refuse_errno(where_, "cannot keep the permissions of the old file", errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) refuse(where_, "cannot write: the file is committed already");
  while (!bytes.empty()) {
    const std::ptrdiff_t put = system_calls().write(fd_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse_errno(where_, "cannot write the file", errno);
    if (put == 0) refuse(where_, "cannot write the file: the system took 0 bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  if (fd_ < 0) refuse(where_, "cannot commit: the file is committed already");
  if (retried_flush(fd_) != 0) refuse_errno(where_, "cannot flush the file to the disk", errno);
  if (system_calls().replace(temporary_, target_) != 0)
    refuse_errno(where_, "cannot put the new file in its place", errno);
  temporary_.clear();
  // Closed only now, as the lock protects the temporary file until it has its name.
  if (system_calls().close(std::exchange(fd_, -1)) != 0 && errno != EINTR)
    refuse_errno(where_, "saved, but the file cannot be closed", errno);
  flush_folder();
}

/// Makes the new name survive a power cut. File systems that report that they cannot flush folders are no error.
void AtomicFile::flush_folder() {
  const int fd = system_calls().open(folder_, OpenFor::folder);
  if (fd < 0 && errno == EACCES) return;  // the folder may be written but not read
  if (fd < 0) refuse_errno(where_, "saved, but the folder cannot be opened to flush it", errno);
  const int result = retried_flush(fd);
  const int error = errno;
  system_calls().close(fd);
  if (result != 0 && error != EINVAL && error != ENOTSUP)
    refuse_errno(where_, "saved, but the folder cannot be flushed to the disk", error);
}

void write_atomically(const std::filesystem::path& target, std::span<const std::byte> bytes) {
  AtomicFile file(target);
  file.write(bytes);
  file.commit();
}

// ---- text ----------------------------------------------------------------------------------------------

std::string read_text(const std::filesystem::path& path) {
  const detail::WholeFile file = detail::read_whole(path);
  const std::span<const std::byte> bytes = file.bytes.span();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_atomically(path, std::as_bytes(std::span(text)));
}

}  // namespace ferrite::io
