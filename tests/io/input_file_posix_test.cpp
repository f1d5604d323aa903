/// Reading on POSIX: FIFOs, devices, links, permissions.
#include <sys/stat.h>
#include <unistd.h>

#include "permissions.h"
#include "refused_files.h"
#include "temporary_folder.h"

namespace {

using namespace io_test;
using ferrite::io::read_safetensors;
namespace fs = std::filesystem;
namespace ut = boost::unit_test;

}  // namespace

BOOST_AUTO_TEST_SUITE(input_file_on_posix)

BOOST_AUTO_TEST_CASE(what_is_no_file) {
  const TemporaryFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("circle", folder / "circle");
  put(folder / "file", good());
  check_refused(folder / "fifo", "not a regular file: it is a FIFO");
  check_refused("/dev/zero", "not a regular file: it is a device");
  check_refused(folder / "file/below", "cannot open the file: Not a directory");
  check_refused(folder / "circle", "symbolic links");
  check_refused(folder / std::string(4096, 'n'), "File name too long");
}

BOOST_AUTO_TEST_CASE(a_link_is_followed) {
  const TemporaryFolder folder;
  put(folder / "file", good());
  fs::create_symlink("file", folder / "link");
  BOOST_TEST(read_safetensors(folder / "link").size() == 1u);
}

BOOST_AUTO_TEST_CASE(a_file_that_may_not_be_read, *ut::precondition(io_test::is_bound_by_permissions)) {
  const TemporaryFolder folder;
  put(folder / "file", good());
  fs::permissions(folder / "file", fs::perms::none);
  check_refused(folder / "file", "cannot open the file: Permission denied");
}

/// A huge file of another format is refused by its first bytes, without memory for the rest.
BOOST_AUTO_TEST_CASE(a_huge_hole) {
  const TemporaryFolder folder;
  put(folder / "file", "");
  fs::resize_file(folder / "file", std::uintmax_t{1} << 40);
  check_refused(folder / "file", "the header is empty");
  put(folder / "file", good());
  fs::resize_file(folder / "file", std::uintmax_t{1} << 40);
  check_refused(folder / "file", "something follows the tensors");
}

BOOST_AUTO_TEST_SUITE_END()
