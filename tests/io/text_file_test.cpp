// Text files: bytes are read as they were written.
#include "ferrite/io/text_file.h"

#include <boost/test/unit_test.hpp>

#include "ferrite/tensor/error.h"
#include "io/temporary_folder.h"

using namespace ferrite;

BOOST_AUTO_TEST_SUITE(text_file)

BOOST_AUTO_TEST_CASE(bytes_come_back) {
  const io_test::TemporaryFolder folder;
  const std::string text("a\r\nb\0\xff end", 11);
  io::write_text(folder / "a.txt", text);
  BOOST_TEST(io::read_text(folder / "a.txt") == text);
  io::write_text(folder / "a.txt", "");
  BOOST_TEST(io::read_text(folder / "a.txt").empty());
}

BOOST_AUTO_TEST_CASE(refusals) {
  const io_test::TemporaryFolder folder;
  BOOST_CHECK_THROW((void)io::read_text(folder / "none"), IoError);
  BOOST_CHECK_THROW((void)io::read_text(folder / "."), IoError);
  BOOST_CHECK_THROW(io::write_text(folder / "none" / "a", "x"), IoError);
}

BOOST_AUTO_TEST_SUITE_END()
