/// Paths that cannot be read as files, and files that change while they are read.
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <fstream>

#include "broken_calls.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/system/files.h"
#include "refused_files.h"
#include "support/system.h"
#include "temporary_folder.h"

namespace {

using ferrite::detail::system_calls;
using ferrite::io::read_safetensors;
using io_test::check_refused;
using io_test::good;
using io_test::put;
using io_test::real;
using io_test::TemporaryFolder;
namespace fs = std::filesystem;

/// Replaces one system call in one test.
template <class F>
class Replaced {
 public:
  Replaced(F*& call, F* other) : call_(call), kept_(call) { call = other; }
  ~Replaced() { call_ = kept_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  F*& call_;
  F* kept_;
};

std::string path_to_cut;

std::ptrdiff_t cutting_read(int fd, void* bytes, std::size_t n) {
  const std::ptrdiff_t got = real.read(fd, bytes, std::min<std::size_t>(n, 8));
  fs::resize_file(path_to_cut, 40);
  return got;
}

std::ptrdiff_t growing_read(int fd, void* bytes, std::size_t n) {
  std::ofstream(path_to_cut, std::ios::app) << "x";
  return real.read(fd, bytes, n);
}

std::ptrdiff_t broken_read(int, void*, std::size_t) {
  errno = EIO;
  return -1;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(input_file)

BOOST_AUTO_TEST_CASE(what_is_no_file) {
  const TemporaryFolder folder;
  check_refused(folder.path(), "not a regular file: it is a folder");
  check_refused(support::null_device(), "not a regular file: it is a device");
  check_refused(folder / "none", "cannot open the file: No such file or directory");
  check_refused("", "the path is empty");
  check_refused(folder / std::string("file\0x", 6), "holds a NUL");
}

BOOST_AUTO_TEST_CASE(errors_begin_with_the_path) {
  const TemporaryFolder folder;
  put(folder / "file", "short");
  check_refused(folder / "file", (folder / "file").string() + ": too short to be a safetensors file: 5 bytes");
}

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_or_grows_meanwhile) {
  const TemporaryFolder folder;
  path_to_cut = (folder / "file").string();
  put(folder / "file", good());
  {
    const Replaced shrinking(system_calls().read, &cutting_read);
    check_refused(folder / "file", "the file ended while it was being read");
  }
  put(folder / "file", good());
  const Replaced growing(system_calls().read, &growing_read);
  check_refused(folder / "file", "the file grew while it was being read");
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails) {
  const TemporaryFolder folder;
  put(folder / "file", good());
  const Replaced broken(system_calls().read, &broken_read);
  check_refused(folder / "file", "cannot read the file: Input/output error");
}

BOOST_AUTO_TEST_SUITE_END()
