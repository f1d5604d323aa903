/// Saving on POSIX beside links and FIFOs, in folders that cannot be flushed, and in a process that dies at any system
/// call.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "broken_calls.h"

namespace {

using namespace io_test;
using ferrite::IoError;
namespace fs = std::filesystem;

bool is_folder(int fd) {
  ferrite::detail::FileStatus status;
  return real.status(fd, status) == 0 && status.kind == ferrite::detail::FileKind::folder;
}

template <int error>
int failing_for_folders(int fd) {
  if (!is_folder(fd)) return real.flush(fd);
  errno = error;
  return -1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(atomic_file_faults_on_posix)

BOOST_AUTO_TEST_CASE(links_and_fifos_with_the_temporary_name_are_left_alone) {
  save_beside([](const std::string& path) { std::filesystem::create_symlink("other", path); });
  save_beside([](const std::string& path) { std::filesystem::create_symlink("nowhere", path); });
  save_beside([](const std::string& path) { BOOST_REQUIRE(::mkfifo(path.c_str(), 0600) == 0); });
}

/// A FIFO, a folder and a link have the name of a temporary file whose process has ended: none is ours, and a FIFO must
/// not even be opened, because its writer would notice.
BOOST_AUTO_TEST_CASE(what_is_no_file_is_neither_opened_nor_removed) {
  static std::vector<std::string> opened;
  opened.clear();
  const TemporaryFolder folder;
  put(folder / "other", "not ours");
  const std::string name = ".model.tmp." + std::to_string(::getpid()) + ".";
  BOOST_REQUIRE(::mkfifo((folder / (name + "1")).c_str(), 0600) == 0);
  std::filesystem::create_directory(folder / (name + "2"));
  std::filesystem::create_symlink("other", folder / (name + "3"));
  put(folder / (name + "4"), "stale");
  {
    Broken calls;
    calls->open = [](const fs::path& path, OpenFor purpose) {
      opened.emplace_back(path.string());
      return real.open(path, purpose);
    };
    save(folder / "model", "new");
  }
  BOOST_TEST(std::ranges::count(opened, (folder / (name + "4")).string()) == 1);
  for (const char* kind : {"1", "2", "3"})
    BOOST_TEST(std::ranges::count(opened, (folder / (name + kind)).string()) == 0);
  BOOST_TEST(content(folder / "model") == "new");
  BOOST_TEST(content(folder / "other") == "not ours");
  BOOST_TEST(folder.leftovers() == 3);
}

/// The child dies at the n-th system call of a save, for every n: before the call, and after it.
BOOST_AUTO_TEST_CASE(a_death_at_any_system_call_leaves_a_whole_file) {
  static int countdown;
  static bool afterwards;
  const auto tick = [](bool after) {
    if (after == afterwards && countdown-- == 0) ::raise(SIGKILL);
  };
  static const auto ticked = tick;
  bool saved = false;
  for (int n = 0; !saved; ++n) {
    for (const bool after : {false, true}) {
      const TemporaryFolder folder;
      put(folder / "model", "old");
      const pid_t child = ::fork();
      if (child == 0) {
        countdown = n, afterwards = after;
        SystemCalls& c = system_calls();
        c.open = [](const fs::path& path, OpenFor purpose) {
          ticked(false);
          const int fd = real.open(path, purpose);
          return ticked(true), fd;
        };
        c.write = [](int fd, const void* bytes, std::size_t size) {
          ticked(false);
          const std::ptrdiff_t put = real.write(fd, bytes, std::min<std::size_t>(size, 2));
          return ticked(true), put;
        };
        c.flush = [](int fd) {
          ticked(false);
          const int result = real.flush(fd);
          return ticked(true), result;
        };
        c.permit = [](int fd, std::uint32_t permissions) {
          ticked(false);
          const int result = real.permit(fd, permissions);
          return ticked(true), result;
        };
        c.replace = [](const fs::path& from, const fs::path& to) {
          ticked(false);
          const int result = real.replace(from, to);
          return ticked(true), result;
        };
        c.close = [](int fd) {
          ticked(false);
          const int result = real.close(fd);
          return ticked(true), result;
        };
        save(folder / "model", "longer");
        ::_exit(0);
      }
      int status = 0;
      BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
      saved = WIFEXITED(status);
      const std::string found = content(folder / "model");
      BOOST_TEST((found == "longer" || (found == "old" && !saved)), "after " << n << " calls: " << found);
      save(folder / "model", "next");
      BOOST_TEST(content(folder / "model") == "next");
      BOOST_TEST(folder.leftovers() == 0);
    }
    BOOST_REQUIRE(n < 100);
  }
}

BOOST_AUTO_TEST_CASE(a_file_system_that_cannot_flush_folders_is_no_error) {
  const TemporaryFolder folder;
  Broken calls;
  calls->flush = failing_for_folders<EINVAL>;
  save(folder / "model", "new");
  BOOST_TEST(content(folder / "model") == "new");
}

BOOST_AUTO_TEST_CASE(a_folder_that_fails_after_the_rename) {
  const TemporaryFolder folder;
  put(folder / "model", "old");
  Broken calls;
  calls->flush = failing_for_folders<EIO>;
  BOOST_CHECK_EXCEPTION(save(folder / "model", "new"), IoError, says("saved, but the folder cannot be flushed"));
  BOOST_TEST(content(folder / "model") == "new");
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
