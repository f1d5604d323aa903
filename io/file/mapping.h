#pragma once
/// A file mapped into memory.
#include <cstddef>
#include <span>

#include "ferrite/io/file/input_file.h"

namespace ferrite::io::detail {

/// The bytes of a file in memory that the system fills page by page, when they are read. They stay readable when the
/// file is closed, renamed, removed or replaced by another of its name; they change where somebody writes into the
/// file, and reading what somebody cut off ends the process (SIGBUS).
class Mapping {
 public:
  /// Throws IoError where the system maps no such file, or when the file has another size than when it was opened.
  explicit Mapping(const InputFile& file);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  /// The bytes of the file, and zeros behind them to the end of the last page.
  std::span<const std::byte> readable() const { return readable_; }

 private:
  std::span<const std::byte> readable_;
};

}  // namespace ferrite::io::detail
