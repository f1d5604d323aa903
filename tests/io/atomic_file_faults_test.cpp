/// Saving while every system call fails in turn: the error has the system's message, and the old file stays.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <functional>

#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/system/files.h"
#include "saving.h"
#include "temporary_folder.h"

namespace {

using ferrite::IoError;
using ferrite::detail::system_calls;
using ferrite::detail::SystemCalls;
using io_test::content;
using io_test::put;
using io_test::save;
using io_test::says;
using io_test::TemporaryFolder;
namespace io = ferrite::io;
namespace fs = std::filesystem;
using ferrite::detail::OpenFor;

const SystemCalls real = system_calls();

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

int calls_left = 0;

std::ptrdiff_t interrupted_write(int fd, const void* bytes, std::size_t n) {
  if (calls_left-- % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  return ::write(fd, bytes, std::min<std::size_t>(n, 3));
}

std::ptrdiff_t full_disk(int fd, const void* bytes, std::size_t n) {
  if (calls_left-- > 0) return ::write(fd, bytes, std::min<std::size_t>(n, 2));
  errno = ENOSPC;
  return -1;
}

std::ptrdiff_t interrupted_read(int fd, void* bytes, std::size_t n) {
  if (calls_left-- % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  return ::read(fd, bytes, std::min<std::size_t>(n, 3));
}

template <int error>
int failing(int) {
  errno = error;
  return -1;
}

int failing_close(int fd) {
  ::close(fd);
  errno = EIO;
  return -1;
}

bool is_folder(int fd) {
  struct stat about {};
  return ::fstat(fd, &about) == 0 && S_ISDIR(about.st_mode);
}

template <int error>
int failing_for_folders(int fd) {
  if (!is_folder(fd)) return ::fsync(fd);
  errno = error;
  return -1;
}

int interrupted_fsync(int fd) {
  if (calls_left-- > 0) return failing<EINTR>(fd);
  return ::fsync(fd);
}

/// Checks that a save fails with this message and leaves the old file alone.
void check_keeps_old(const std::string& message) {
  const TemporaryFolder folder;
  put(folder / "model", "old");
  const auto error = says(message);
  BOOST_CHECK_EXCEPTION(save(folder / "model", "new content"), IoError, error);
  BOOST_TEST(content(folder / "model") == "old");
  BOOST_TEST(folder.leftovers() == 0);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(atomic_file_faults)

BOOST_AUTO_TEST_CASE(interrupted_and_short_calls_are_continued) {
  const TemporaryFolder folder;
  Broken calls;
  calls->write = interrupted_write;
  calls->flush = interrupted_fsync;
  calls->read = interrupted_read;
  calls_left = 100;
  save(folder / "text", "some twenty characters");
  BOOST_TEST(content(folder / "text") == "some twenty characters");
  const std::vector<io::NamedTensor> tensors = {{"x", ferrite::ones({5})}};
  calls_left = 1000;
  io::write_safetensors(folder / "model", tensors);
  BOOST_TEST(io::read_safetensors(folder / "model").tensor("x").numel() == 5);
}

BOOST_AUTO_TEST_CASE(a_full_disk_keeps_the_old_file) {
  for (calls_left = 0; calls_left < 5; ++calls_left) {
    const int before = calls_left;
    Broken calls;
    calls->write = full_disk;
    check_keeps_old("cannot write the file: No space left on device");
    calls_left = before;
  }
}

BOOST_AUTO_TEST_CASE(every_failing_call_is_reported) {
  const auto broken = [](auto change, const std::string& message) {
    Broken calls;
    change(system_calls());
    check_keeps_old(message);
  };
  broken([](SystemCalls& c) { c.write = [](int, const void*, std::size_t) -> std::ptrdiff_t { return 0; }; },
         "took 0 bytes");
  broken([](SystemCalls& c) { c.flush = failing<EIO>; }, "cannot flush the file to the disk: Input/output error");
  broken([](SystemCalls& c) { c.permit = [](int, std::uint32_t) { return failing<EPERM>(0); }; },
         "keep the permissions");
  broken([](SystemCalls& c) { c.replace = [](const fs::path&, const fs::path&) { return failing<EXDEV>(0); }; },
         "cannot put the new file in its place");
  broken([](SystemCalls& c) { c.open = [](const fs::path&, OpenFor) { return failing<EMFILE>(0); }; },
         "cannot create a temporary file in the same folder: Too many open files");
  broken([](SystemCalls& c) { c.open = [](const fs::path&, OpenFor) { return failing<EEXIST>(0); }; },
         "every name is taken");
}

/// An obstacle has the name of the first temporary file: it is left as it was, and another name is taken.
BOOST_AUTO_TEST_CASE(a_taken_temporary_name_is_left_alone) {
  static std::function<void(const std::string&)> obstruct;
  static std::string taken;
  static int tries;
  const auto save_beside = [](const std::function<void(const std::string&)>& obstacle) {
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
      calls->open = [](const fs::path& path, OpenFor purpose) {
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
  };
  save_beside([](const std::string& path) { put(path, "somebody's"); });
  BOOST_TEST(tries == 2);
  save_beside([](const std::string& path) { std::filesystem::create_directory(path); });
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
          const std::ptrdiff_t put = ::write(fd, bytes, std::min<std::size_t>(size, 2));
          return ticked(true), put;
        };
        c.flush = [](int fd) {
          ticked(false);
          const int result = ::fsync(fd);
          return ticked(true), result;
        };
        c.permit = [](int fd, std::uint32_t permissions) {
          ticked(false);
          const int result = ::fchmod(fd, permissions);
          return ticked(true), result;
        };
        c.replace = [](const fs::path& from, const fs::path& to) {
          ticked(false);
          const int result = real.replace(from, to);
          return ticked(true), result;
        };
        c.close = [](int fd) {
          ticked(false);
          const int result = ::close(fd);
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

BOOST_AUTO_TEST_CASE(failures_after_the_rename_say_that_it_is_saved) {
  const auto broken = [](auto change, const std::string& message) {
    const TemporaryFolder folder;
    put(folder / "model", "old");
    Broken calls;
    change(system_calls());
    const auto error = says(message);
    BOOST_CHECK_EXCEPTION(save(folder / "model", "new"), IoError, error);
    BOOST_TEST(content(folder / "model") == "new");
    BOOST_TEST(folder.leftovers() == 0);
  };
  broken([](SystemCalls& c) { c.close = failing_close; }, "saved, but the file cannot be closed");
  broken([](SystemCalls& c) { c.flush = failing_for_folders<EIO>; }, "saved, but the folder cannot be flushed");
}

BOOST_AUTO_TEST_CASE(a_file_system_that_cannot_flush_folders_is_no_error) {
  const TemporaryFolder folder;
  Broken calls;
  calls->flush = failing_for_folders<EINVAL>;
  save(folder / "model", "new");
  BOOST_TEST(content(folder / "model") == "new");
}

BOOST_AUTO_TEST_SUITE_END()
