#pragma once
/// Reading a regular file from front to back, whole or mapped into memory.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace ferrite::io::detail {

/// A block of bytes on the heap that is not cleared first.
class Block {
 public:
  Block() = default;
  /// Allocates `size` bytes. Throws IoError, its message beginning with `where`, when there is not enough memory.
  Block(std::uint64_t size, std::string_view where);

  std::span<std::byte> span() { return {bytes_.get(), size_}; }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> bytes_;
};

/// A regular file opened for reading from front to back. Every failure is an IoError with the path and the system's
/// message.
class InputFile {
 public:
  /// Opens a file. Refuses folders, FIFOs, devices and sockets without waiting for them.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Returns the path as errors show it.
  const std::string& where() const { return where_; }
  /// Returns the number of bytes in the file when it was opened.
  std::uint64_t size() const { return size_; }
  /// Fills all of `out`. Throws when the file ends before, because it shrank while being read.
  void read(std::span<std::byte> out);
  /// Throws when more bytes follow, because the file grew while being read.
  void expect_end();
  /// Throws when the file has another size than when it was opened.
  void expect_size() const;
  /// Returns the file descriptor, which is open as long as this object lives.
  int descriptor() const { return fd_; }

 private:
  /// Returns the size of the file, which must be regular.
  std::uint64_t present_size() const;
  std::size_t read_some(std::span<std::byte> out);

  std::string where_;
  std::uint64_t size_ = 0;
  int fd_ = -1;
};

/// The bytes of a file, with its path as errors show it.
struct WholeFile {
  std::string where;
  Block bytes;
};
/// Reads all of a file. Throws IoError.
WholeFile read_whole(const std::filesystem::path& path);

/// The bytes of a file in memory that the system fills page by page, when they are read. They stay readable when the
/// file is closed, renamed, removed or replaced by another of its name; they change when the file is written to, and
/// reading a part that was truncated ends the process (SIGBUS).
class Mapping {
 public:
  /// Maps a file. Throws IoError where the system cannot, or when the file's size has changed since it was opened.
  explicit Mapping(const InputFile& file);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// Returns the bytes of the file, followed by zeros up to the end of the last page.
  std::span<const std::byte> readable() const { return readable_; }

 private:
  std::span<const std::byte> readable_;
};

}  // namespace ferrite::io::detail
