#pragma once
/// Access to files on POSIX and Windows, implemented in posix.cpp and windows.cpp. Calls that fail return -1 or null
/// and set errno.
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace ferrite::detail {

/// The kind of object that a path or a descriptor refers to.
enum class FileKind : std::uint8_t { regular, folder, fifo, device, socket, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  std::uint64_t size = 0;
  std::uint64_t names = 1;        ///< number of names of the file; 0 if it was removed
  std::uint32_t permissions = 0;  ///< those that a new version of the file should have; 0 on Windows
  std::uint32_t user = 0, group = 0;
};

/// The purpose for which a file is opened. Other programs do not inherit the descriptor.
enum class OpenFor : std::uint8_t {
  reading,           ///< also what is no file, without waiting for it
  reading_no_link,   ///< the same, but no symbolic link
  creating,          ///< writing to a new file with the permissions of new files; fails if the name is taken
  creating_private,  ///< the same for its owner only
  appending,         ///< as `creating`, every write at the end
  folder,            ///< flushing a folder; fails with EACCES where folders cannot be flushed
};

/// The table of calls through which files are read and saved, so that tests can make each of them fail. Only tests
/// change it, before any other thread runs.
struct SystemCalls {
  int (*open)(const std::filesystem::path& path, OpenFor purpose);
  int (*status)(int fd, FileStatus& out);
  std::ptrdiff_t (*read)(int fd, void* bytes, std::size_t n);
  std::ptrdiff_t (*write)(int fd, const void* bytes, std::size_t n);
  int (*permit)(int fd, std::uint32_t permissions);
  int (*flush)(int fd);
  void* (*map)(std::size_t n, int fd);  ///< the first n bytes, for reading
  int (*unmap)(void* at, std::size_t n);
  int (*close)(int fd);
  int (*replace)(const std::filesystem::path& from, const std::filesystem::path& to);  ///< renames `from` over `to`
};
SystemCalls& system_calls() noexcept;

/// Describes the object at a path without following a symbolic link.
int status_of_path(const std::filesystem::path& path, FileStatus& out);
/// Locks a file for this process; fails with EWOULDBLOCK if another process holds the lock.
int lock_file(int fd);
/// Gives a file to another owner, where the system allows that.
int give_file(int fd, std::uint32_t user, std::uint32_t group);
/// Cuts a file off after `size` bytes.
int cut_file(int fd, std::uint64_t size);
/// Removes the name of a file.
int remove_file(const std::filesystem::path& path);
/// Returns the number of bytes of a page of memory, a power of two.
std::size_t page_bytes() noexcept;
/// Returns whether a process with this number may be running.
bool process_lives(int process) noexcept;

}  // namespace ferrite::detail
