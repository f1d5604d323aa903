/// Saving on POSIX: permissions, links, FIFOs, and processes that are killed meanwhile.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include "ferrite/io/safetensors.h"
#include "ferrite/tensor/ops.h"
#include "killed.h"
#include "permissions.h"
#include "saving.h"
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
namespace ut = boost::unit_test;

mode_t mode_of(const fs::path& path) {
  struct stat about {};
  BOOST_REQUIRE(::stat(path.c_str(), &about) == 0);
  return about.st_mode & 07777;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(atomic_file_on_posix)

BOOST_AUTO_TEST_CASE(permissions_are_kept) {
  const TemporaryFolder folder;
  for (const mode_t mode : {0600u, 0640u, 0444u, 0755u}) {
    put(folder / "model", "old");
    BOOST_REQUIRE(::chmod((folder / "model").c_str(), mode) == 0);
    save(folder / "model", "new");
    BOOST_TEST(mode_of(folder / "model") == mode);
    fs::remove(folder / "model");
  }
}

BOOST_AUTO_TEST_CASE(new_files_follow_the_umask) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(027);
  save(folder / "model", "new");
  ::umask(before);
  BOOST_TEST(mode_of(folder / "model") == 0640u);
}

BOOST_AUTO_TEST_CASE(links_are_followed_and_stay) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  put(folder / "real/model", "old");
  fs::create_symlink("real/model", folder / "link");
  fs::create_symlink("link", folder / "link_to_link");
  save(folder / "link_to_link", "new");
  BOOST_TEST(fs::is_symlink(folder / "link_to_link"));
  BOOST_TEST(fs::is_symlink(folder / "link"));
  BOOST_TEST(content(folder / "real/model") == "new");
}

BOOST_AUTO_TEST_CASE(a_link_to_nothing_yet_creates_its_target) {
  const TemporaryFolder folder;
  fs::create_symlink("later", folder / "link");
  save(folder / "link", "new");
  BOOST_TEST(fs::is_symlink(folder / "link"));
  BOOST_TEST(content(folder / "later") == "new");
}

BOOST_AUTO_TEST_CASE(targets_of_posix_that_cannot_be_replaced) {
  const TemporaryFolder folder;
  BOOST_REQUIRE(::mkfifo((folder / "fifo").c_str(), 0600) == 0);
  fs::create_symlink("circle", folder / "circle");
  put(folder / "file", "old");
  BOOST_CHECK_EXCEPTION(save(folder / "fifo", "x"), IoError, says("it is not a regular file"));
  BOOST_CHECK_EXCEPTION(save(folder / "circle", "x"), IoError, says("symbolic links"));
  BOOST_CHECK_EXCEPTION(save(folder / "file/model", "x"), IoError, says("Not a directory"));
  BOOST_CHECK_EXCEPTION(save(folder / std::string(4096, 'n'), "x"), IoError, says("File name too long"));
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(a_folder_that_may_not_be_written, *ut::precondition(io_test::is_bound_by_permissions)) {
  const TemporaryFolder folder;
  put(folder / "model", "old");
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  BOOST_CHECK_EXCEPTION(save(folder / "model", "x"), IoError, says("Permission denied"));
  BOOST_TEST(content(folder / "model") == "old");
}

BOOST_AUTO_TEST_CASE(a_limit_on_the_size_of_files) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{5, 5};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const TemporaryFolder folder;
    try {
      save(folder / "model", "more than five bytes");
      ::_exit(1);
    } catch (const IoError& error) {
      const bool told = std::string(error.what()).find("File too large") != std::string::npos;
      ::_exit(told && folder.leftovers() == 0 ? 0 : 2);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  BOOST_TEST((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/// Returns the number of no process: that of a child that has ended.
pid_t dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  return child;
}

BOOST_AUTO_TEST_CASE(files_of_dead_processes_are_removed) {
  const TemporaryFolder folder;
  const std::string dead = std::to_string(dead_process());
  const std::string alive = std::to_string(::getppid());
  const std::string ours = std::to_string(::getpid());
  put(folder / (".model.tmp." + dead + ".1a2b3c"), "stale");
  put(folder / (".model.tmp." + ours + ".1a2b3c"), "stale: of an earlier process of our number");
  const std::vector<std::string> kept = {
      ".model.tmp." + alive + ".1a2b3c", ".model.tmp." + dead,   ".model.tmp." + dead + ".xyz",
      ".other.tmp." + dead + ".1a2b3c",  ".model.tmp.-1.1a2b3c", ".model.tmp.99999999999999.1"};
  for (const std::string& name : kept) put(folder / name, "not ours to remove");
  save(folder / "model", "new");
  for (const std::string& name : kept) BOOST_TEST(fs::exists(folder / name), name << " was removed");
  BOOST_TEST(folder.leftovers() == static_cast<int>(kept.size()));
}

/// A child saves the numbers 1, 2, ... and is killed; the file is always whole and its number never decreases.
BOOST_AUTO_TEST_CASE(twenty_kills_lose_nothing) {
  const TemporaryFolder folder;
  const fs::path path = folder / "model.safetensors";
  const auto save_number = [&](float number) {
    const std::vector<io::NamedTensor> tensors = {{"n", ferrite::full({100'000}, number)}};
    io::write_safetensors(path, tensors);
  };
  save_number(0);
  float last = 0;
  for (int kill = 0; kill < 20; ++kill) {
    io_test::kill_after(1 + kill % 4, [&](const auto& tell) {
      for (float number = last + 1;; ++number) save_number(number), tell();
    });
    const std::vector<float> values = io::read_safetensors(path).tensor("n").to_vector<float>();
    BOOST_TEST(values.size() == 100'000u);
    BOOST_TEST(std::ranges::count(values, values.front()) == 100'000);
    BOOST_TEST(values.front() >= last + static_cast<float>(1 + kill % 4));
    last = values.front();
  }
  save_number(last + 1);
  BOOST_TEST(folder.leftovers() == 0);
}

BOOST_AUTO_TEST_CASE(the_longest_name_works) {
  const TemporaryFolder folder;
  const std::string name = std::string(200, 'n') + "\xc3\xa9" + std::string(53, 'n');
  save(folder / name, "new");
  BOOST_TEST(content(folder / name) == "new");
}

BOOST_AUTO_TEST_SUITE_END()
