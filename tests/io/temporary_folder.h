#pragma once
/// A temporary folder for one test.
#include <atomic>
#include <filesystem>
#include <string>

#include "ferrite/tensor/system/system.h"

namespace io_test {

/// A separate folder for one test, removed with all its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    static std::atomic<int> made = 0;
    const std::string name = "ferrite-io-" + std::to_string(ferrite::detail::process_number()) + "-";
    do path_ = std::filesystem::temp_directory_path() / (name + std::to_string(made++));
    while (!std::filesystem::create_directory(path_));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all, ignored);
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  /// Returns the number of names in the folder that begin with a dot: leftover temporary files.
  int leftovers() const {
    int n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      n += entry.path().filename().string().starts_with('.') ? 1 : 0;
    return n;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace io_test
