/// Saving leaves the old file or the new one, never anything else.
#include <boost/test/unit_test.hpp>
#include <thread>

#include "ferrite/io/atomic_file.h"
#include "saving.h"
#include "support/system.h"
#include "temporary_folder.h"

namespace {

using ferrite::IoError;
using io_test::content;
using io_test::put;
using io_test::save;
using io_test::says;
using io_test::TemporaryFolder;
namespace fs = std::filesystem;
namespace io = ferrite::io;

}  // namespace

BOOST_AUTO_TEST_SUITE(atomic_file)

BOOST_AUTO_TEST_CASE(creates_and_replaces) {
  const TemporaryFolder folder;
  save(folder / "model", "first");
  BOOST_TEST(content(folder / "model") == "first");
  save(folder / "model", "");
  BOOST_TEST(content(folder / "model").empty());
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(a_name_without_a_folder_is_in_the_current_one) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  save("model", "here");
  fs::current_path(before);
  BOOST_TEST(content(folder / "model") == "here");
}

BOOST_AUTO_TEST_CASE(without_commit_nothing_happens) {
  const TemporaryFolder folder;
  put(folder / "model", "old");
  {
    io::AtomicFile file(folder / "model");
    file.write(std::as_bytes(std::span("new", 3)));
    BOOST_TEST(folder.leftovers() == 1);
  }
  BOOST_TEST(content(folder / "model") == "old");
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(a_committed_file_is_closed) {
  const TemporaryFolder folder;
  io::AtomicFile file(folder / "model");
  file.commit();
  BOOST_CHECK_EXCEPTION(file.write({}), IoError, says("committed already"));
  BOOST_CHECK_EXCEPTION(file.commit(), IoError, says("committed already"));
}

BOOST_AUTO_TEST_CASE(a_save_under_way_is_left_alone) {
  const TemporaryFolder folder;
  io::AtomicFile slow(folder / "model");
  slow.write(std::as_bytes(std::span("slow", 4)));
  save(folder / "model", "quick");
  BOOST_TEST(content(folder / "model") == "quick");
  slow.commit();
  BOOST_TEST(content(folder / "model") == "slow");
}

BOOST_AUTO_TEST_CASE(threads_that_save_to_one_name) {
  const TemporaryFolder folder;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&folder, t] {
      for (int i = 0; i < 20; ++i) save(folder / "model", std::string(10'000, static_cast<char>('a' + t)));
    });
  for (std::thread& thread : threads) thread.join();
  const std::string last = content(folder / "model");
  BOOST_TEST(last == std::string(10'000, last.empty() ? '?' : last[0]));
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(targets_that_cannot_be_replaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "folder");
  BOOST_CHECK_EXCEPTION(save(folder / "folder", "x"), IoError, says("cannot save the file: it is a folder"));
  BOOST_CHECK_EXCEPTION(save(support::null_device(), "x"), IoError, says("it is not a regular file"));
  BOOST_CHECK_EXCEPTION(save(folder / "none/model", "x"), IoError, says("No such file or directory"));
  BOOST_CHECK_EXCEPTION(save("", "x"), IoError, says("names no file"));
  BOOST_CHECK_EXCEPTION(save(folder / "folder/", "x"), IoError, says("names no file"));
  BOOST_CHECK_EXCEPTION(save(folder / std::string("a\0b", 3), "x"), IoError, says("holds a NUL"));
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
