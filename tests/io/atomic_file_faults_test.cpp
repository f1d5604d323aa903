/// Saving while every system call fails in turn: the error has the system's message, and the old file stays.
#include <algorithm>
#include <cerrno>

#include "broken_calls.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"

namespace {

using namespace io_test;
using ferrite::IoError;
namespace io = ferrite::io;
namespace fs = std::filesystem;

int calls_left = 0;

std::ptrdiff_t interrupted_write(int fd, const void* bytes, std::size_t n) {
  if (calls_left-- % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  return real.write(fd, bytes, std::min<std::size_t>(n, 3));
}

std::ptrdiff_t full_disk(int fd, const void* bytes, std::size_t n) {
  if (calls_left-- > 0) return real.write(fd, bytes, std::min<std::size_t>(n, 2));
  errno = ENOSPC;
  return -1;
}

std::ptrdiff_t interrupted_read(int fd, void* bytes, std::size_t n) {
  if (calls_left-- % 2 == 0) {
    errno = EINTR;
    return -1;
  }
  return real.read(fd, bytes, std::min<std::size_t>(n, 3));
}

int failing_close(int fd) {
  real.close(fd);
  errno = EIO;
  return -1;
}

int interrupted_fsync(int fd) {
  if (calls_left-- > 0) return failing<EINTR>(fd);
  return real.flush(fd);
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

BOOST_AUTO_TEST_CASE(a_taken_temporary_name_is_left_alone) {
  save_beside([](const std::string& path) { put(path, "somebody's"); });
  save_beside([](const std::string& path) { std::filesystem::create_directory(path); });
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
}

BOOST_AUTO_TEST_SUITE_END()
