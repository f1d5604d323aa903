/// Writes a temporary file, flushes it to disk, and renames it to the target.
#include "ferrite/io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "ferrite/io/detail/io_text.h"
#include "ferrite/io/file/stale_files.h"
#include "ferrite/io/file/system_calls.h"

namespace ferrite::io {

using detail::refuse;
using detail::refuse_errno;
using detail::system_calls;

/// What stood at the target before.
struct AtomicFile::Old {
  bool exists = false;
  struct stat about {};
};

namespace {

constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;
constexpr int kMostLinks = 40;
constexpr int kMostNames = 100;

/// The file that a chain of symbolic links ends at, existing or not.
std::filesystem::path without_links(std::filesystem::path path, const std::string& where) {
  for (int i = 0; i < kMostLinks; ++i) {
    std::error_code no_link;
    const std::filesystem::path next = std::filesystem::read_symlink(path, no_link);
    if (no_link) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  refuse_errno(where, "cannot save the file", ELOOP);
}

int retried_fsync(int fd) {
  int result = 0;
  do {
    result = system_calls().fsync(fd);
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
  old.exists = ::lstat(target_.c_str(), &old.about) == 0;
  if (!old.exists && errno != ENOENT) refuse_errno(where_, "cannot save the file", errno);
  if (old.exists && S_ISDIR(old.about.st_mode)) refuse(where_, "cannot save the file: it is a folder");
  if (old.exists && !S_ISREG(old.about.st_mode)) refuse(where_, "cannot save the file: it is not a regular file");
  detail::remove_stale(target_);
  create(old);
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) system_calls().close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::create(const Old& old) {
  for (int i = 0; i < kMostNames; ++i) {
    if (!try_create(!old.exists)) continue;
    try {
      if (old.exists) keep_mode(old);
    } catch (...) {
      system_calls().close(std::exchange(fd_, -1));
      ::unlink(temporary_.c_str());
      throw;
    }
    return;
  }
  refuse(where_, "cannot create a temporary file in the same folder: every name is taken");
}

/// False when another name should be tried. `shared`: with the permissions that new files get, instead of ours alone.
bool AtomicFile::try_create(bool shared) {
  const std::filesystem::path path = detail::temporary_path(target_);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  const int fd = system_calls().open(path.c_str(), flags, shared ? 0666 : 0600);
  if (fd < 0 && (errno == EEXIST || errno == EINTR)) return false;
  if (fd < 0) refuse_errno(where_, "cannot create a temporary file in the same folder", errno);
  fd_ = fd;
  temporary_ = path;
  if (claim()) return true;
  system_calls().close(std::exchange(fd_, -1));
  ::unlink(temporary_.c_str());
  temporary_.clear();
  return false;
}

/// Locks the temporary file, which tells other saves that it is in use. False when one of them took it for stale
/// between its creation and the lock. File systems without locks are trusted.
bool AtomicFile::claim() const {
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat about {};
  return ::fstat(fd_, &about) != 0 || about.st_nlink > 0;
}

void AtomicFile::keep_mode(const Old& old) {
  struct stat about {};
  const bool other =
      ::fstat(fd_, &about) == 0 && (about.st_uid != old.about.st_uid || about.st_gid != old.about.st_gid);
  const bool refused = other && ::fchown(fd_, old.about.st_uid, old.about.st_gid) != 0;
  const mode_t kept = refused ? 0700 : 0777;  // not for a group or world that the old owner did not mean
  if (system_calls().fchmod(fd_, old.about.st_mode & kept) != 0)
    refuse_errno(where_, "cannot keep the permissions of the old file", errno);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (fd_ < 0) refuse(where_, "cannot write: the file is committed already");
  while (!bytes.empty()) {
    const ssize_t put = system_calls().write(fd_, bytes.data(), std::min(bytes.size(), kMostAtOnce));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse_errno(where_, "cannot write the file", errno);
    if (put == 0) refuse(where_, "cannot write the file: the system took 0 bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  if (fd_ < 0) refuse(where_, "cannot commit: the file is committed already");
  if (retried_fsync(fd_) != 0) refuse_errno(where_, "cannot flush the file to the disk", errno);
  if (system_calls().rename(temporary_.c_str(), target_.c_str()) != 0)
    refuse_errno(where_, "cannot put the new file in its place", errno);
  temporary_.clear();
  // Closed only now: the lock shields the temporary file until it has its name.
  if (system_calls().close(std::exchange(fd_, -1)) != 0 && errno != EINTR)
    refuse_errno(where_, "saved, but the file cannot be closed", errno);
  flush_folder();
}

/// Makes the new name outlive a power cut. Some file systems cannot flush folders and say so; that is no error.
void AtomicFile::flush_folder() {
  const int fd = system_calls().open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0 && errno == EACCES) return;  // a folder that may be written but not read
  if (fd < 0) refuse_errno(where_, "saved, but the folder cannot be opened to flush it", errno);
  const int result = retried_fsync(fd);
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

}  // namespace ferrite::io
