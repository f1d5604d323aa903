#pragma once
/// Reading a regular file from front to back.
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "ferrite/io/file/file_block.h"

namespace ferrite::io::detail {

/// A regular file opened for reading from front to back. Every failure is an IoError with the path and the
/// system's words.
class InputFile {
 public:
  /// Refuses folders, FIFOs, devices and sockets without waiting for them.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The path as errors show it.
  const std::string& where() const { return where_; }
  /// Bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }
  /// Fills all of `out`. Throws when the file ends before: it was cut while being read.
  void read(std::span<std::byte> out);
  /// Throws when more bytes follow: the file grew while being read.
  void expect_end();
  /// Throws when the file has another size than when it was opened.
  void expect_size() const;
  /// Open as long as this lives.
  int descriptor() const { return fd_; }

 private:
  struct stat status() const;
  void check_regular();
  std::size_t read_some(std::span<std::byte> out);

  std::string where_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

/// All of a file. Throws IoError.
struct WholeFile {
  std::string where;
  Block bytes;
};
WholeFile read_whole(const std::filesystem::path& path);

}  // namespace ferrite::io::detail
