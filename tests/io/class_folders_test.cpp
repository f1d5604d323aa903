/// Folders of classes: the files listed, their order, and errors.
#include "ferrite/io/class_folders.h"

#include <boost/test/unit_test.hpp>
#include <fstream>

#include "hostile_suite.h"
#include "support/system.h"
#include "temporary_folder.h"

namespace {

using namespace ferrite;
namespace fs = std::filesystem;

void touch(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(class_folders)

BOOST_AUTO_TEST_CASE(sorted_classes_and_files) {
  const io_test::TemporaryFolder folder;
  for (const char* name : {"dogs/b.png", "dogs/a.PNG", "dogs/more/c.png", "cats/z.png", "Zebras/1.png", "dogs/note.txt",
                           "dogs/.hidden.png", "dogs/.cache/x.png", ".git/y.png", "loose.png"})
    touch(folder / name);
  const io::ClassFolders all = io::list_class_folders(folder.path(), {".png"});
  BOOST_TEST(all.classes == (std::vector<std::string>{"Zebras", "cats", "dogs"}), boost::test_tools::per_element());
  std::vector<std::string> names;
  for (const fs::path& file : all.files) names.push_back(fs::relative(file, folder.path()).generic_string());
  BOOST_TEST(
      names == (std::vector<std::string>{"Zebras/1.png", "cats/z.png", "dogs/a.PNG", "dogs/b.png", "dogs/more/c.png"}),
      boost::test_tools::per_element());
  BOOST_TEST(all.labels.to_vector<std::int64_t>() == (std::vector<std::int64_t>{0, 1, 2, 2, 2}),
             boost::test_tools::per_element());
  BOOST_TEST(io::list_class_folders(folder.path()).files.size() == 6U);  // includes the note
}

BOOST_AUTO_TEST_CASE(links_do_not_lead_in_circles, *boost::unit_test::precondition(support::has_links)) {
  const io_test::TemporaryFolder folder;
  touch(folder / "a/1.png");
  fs::create_directory_symlink(folder.path(), folder / "a/up");
  fs::create_symlink(folder / "a/1.png", folder / "a/2.png");
  BOOST_TEST(io::list_class_folders(folder.path()).files.size() == 2U);
}

BOOST_AUTO_TEST_CASE(what_is_no_set_of_classes) {
  const io_test::TemporaryFolder folder;
  const auto says = [&](const fs::path& where, const std::string& what) {
    return hostile_suite::says(where.string() + ": ", what);
  };
  BOOST_CHECK_EXCEPTION(io::list_class_folders(folder / "gone"), IoError,
                        says(folder / "gone", "cannot list the folder: No such file or directory"));
  touch(folder / "file");
  BOOST_CHECK_THROW(io::list_class_folders(folder / "file"), IoError);
  BOOST_CHECK_EXCEPTION(io::list_class_folders(folder.path()), IoError, says(folder.path(), "no folders of classes"));
  touch(folder / "a/1.txt");
  BOOST_CHECK_EXCEPTION(io::list_class_folders(folder.path(), {".png"}), IoError,
                        says(folder / "a", "a class without files of the endings that are asked for"));
}

BOOST_AUTO_TEST_SUITE_END()
