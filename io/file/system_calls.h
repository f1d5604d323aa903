#pragma once
/// The system calls that reading and saving use, which tests replace to make them fail.
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace ferrite::io::detail {

/// The table of system calls through which files are read and saved, so that tests can make each of them fail. Only
/// tests change it, before any other thread runs.
struct SystemCalls {
  int (*open)(const char* path, int flags, mode_t mode);
  int (*fstat)(int fd, struct stat* out);
  ssize_t (*read)(int fd, void* bytes, std::size_t n);
  ssize_t (*write)(int fd, const void* bytes, std::size_t n);
  int (*fchmod)(int fd, mode_t mode);
  int (*fsync)(int fd);
  void* (*mmap)(void* at, std::size_t n, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* at, std::size_t n);
  int (*close)(int fd);
  int (*rename)(const char* from, const char* to);
};

SystemCalls& system_calls() noexcept;

}  // namespace ferrite::io::detail
