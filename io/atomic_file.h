#pragma once
/// Saving files atomically: readers see the old contents or the new, never a part.
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "ferrite/tensor/language.h"

namespace ferrite::io {

/// A file that is replaced as a whole or not at all, whatever happens on the way (error, kill -9, power cut).
///
/// The bytes go to a temporary file `.<name>.tmp.<pid>.<random>` in the same folder; `commit` flushes it to the
/// disk, renames it over the target and flushes the folder. An old file's permissions are kept, its owner too where
/// the system allows; a symbolic link is followed, so that the link stays. Temporary files left behind by processes
/// that died are removed when the same name is saved again. Two processes saving to one name: the last one wins.
///
/// Every failure of every call is an IoError with the path and the system's words. Not for use by several threads.
class AtomicFile {
 public:
  /// Creates the temporary file. Throws IoError when the folder is missing or cannot be written, and when the
  /// target exists and is no regular file.
  explicit AtomicFile(const std::filesystem::path& target);
  /// Removes the temporary file unless committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends all the bytes. Throws IoError; the target is then untouched.
  void write(std::span<const std::byte> bytes);
  /// Puts the new file in the place of the old one. Throws IoError; the target is then untouched, unless the error
  /// begins with "saved, but": the new file is in place and one of the last steps (closing it, flushing the folder)
  /// failed.
  void commit();

 private:
  struct Old;
  void create(const Old& old);
  bool try_create(bool shared);
  bool claim() const;
  void keep_mode(const Old& old);
  void flush_folder();

  std::string where_;
  std::filesystem::path target_;
  std::filesystem::path folder_;
  std::filesystem::path temporary_;
  int fd_ = -1;
};

/// Replaces the file at `target` by one that holds `bytes`. Throws IoError, as AtomicFile.
void write_atomically(const std::filesystem::path& target, std::span<const std::byte> bytes);

}  // namespace ferrite::io
