#pragma once
/// System calls that tests of saving replace.
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <functional>

#include "ferrite/tensor/system/files.h"
#include "saving.h"
#include "temporary_folder.h"

namespace io_test {

using ferrite::detail::OpenFor;
using ferrite::detail::system_calls;
using ferrite::detail::SystemCalls;

inline const SystemCalls real = system_calls();

/// Replaces system calls in one test.
class Broken {
 public:
  Broken() : kept_(system_calls()) {}
  ~Broken() { system_calls() = kept_; }
  Broken(const Broken&) = delete;
  Broken& operator=(const Broken&) = delete;
  SystemCalls* operator->() { return &system_calls(); }

 private:
  SystemCalls kept_;
};

template <int error>
int failing(int) {
  errno = error;
  return -1;
}

/// Saves while `obstacle` puts something in the place of the first temporary file: it is left as it was, and another
/// name is taken.
inline void save_beside(const std::function<void(const std::string&)>& obstacle) {
  static std::function<void(const std::string&)> obstruct;
  static std::string taken;
  static int tries;
  const TemporaryFolder folder;
  put(folder / "model", "old");
  put(folder / "other", "not ours");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  obstruct = obstacle;
  taken.clear();
  tries = 0;
  {
    Broken calls;
    calls->open = [](const std::filesystem::path& path, OpenFor purpose) {
      const bool creates = purpose == OpenFor::creating || purpose == OpenFor::creating_private;
      if (creates && tries++ == 0) obstruct(taken = path.string());
      return real.open(path, purpose);
    };
    save("model", "new");
  }
  BOOST_TEST(tries == 2);
  BOOST_TEST(content("model") == "new");
  BOOST_TEST(content("other") == "not ours");
  BOOST_TEST(std::filesystem::exists(std::filesystem::symlink_status(taken)));
  BOOST_TEST(folder.leftovers() == 1);
  std::filesystem::current_path(before);
}

}  // namespace io_test
