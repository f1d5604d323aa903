#pragma once
/// Saving files atomically: readers see the old contents or the new, never a mixture.
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
/// the system allows; a symbolic link is followed, so that the link stays. Temporary files of processes that died are
/// removed when the same name is saved again. When two processes save to one name, the last one wins.
///
/// Every failure of every call is an IoError with the path and the system's message. Not safe to share between threads.
class AtomicFile {
 public:
  /// Creates the temporary file. Throws IoError when the folder is missing or cannot be written, and when the
  /// target exists and is not a regular file.
  explicit AtomicFile(const std::filesystem::path& target);
  /// Removes the temporary file unless committed.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends all of `bytes`. Throws IoError on failure; the target is then untouched.
  void write(std::span<const std::byte> bytes);
  /// Replaces the old file by the new one. Throws IoError on failure; the target is then untouched, unless the error
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

/// Replaces the file at `target` atomically by one that holds `bytes`. Throws IoError as AtomicFile does.
void write_atomically(const std::filesystem::path& target, std::span<const std::byte> bytes);

}  // namespace ferrite::io
