// Every folder of tests has its line in tests/README.md.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

/// Folders of tests that have no line in the table of tests/README.md, and lines of folders that are not there.
std::vector<std::string> untold_folders(const std::string& page, const std::set<std::string>& folders) {
  std::set<std::string> told;
  static const std::regex pattern(R"(\n\| `([a-z_]+)` \|)");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), pattern); at != std::sregex_iterator(); ++at)
    told.insert((*at)[1]);
  std::vector<std::string> faults;
  std::ranges::set_symmetric_difference(folders, told, std::back_inserter(faults));
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(folders)

BOOST_AUTO_TEST_CASE(every_folder_of_tests_has_its_line) {
  BOOST_TEST(untold_folders("\n| `nn` | layers |\n| `gone` | x |\n", {"io", "nn"}).size() == 2U);
  const std::filesystem::path tests = std::filesystem::path(FERRITE_SOURCE_DIR) / "tests";
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(tests))
    if (entry.is_directory() && entry.path().filename() != "__pycache__") folders.insert(entry.path().filename());
  std::ifstream file(tests / "README.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& folder : untold_folders(page, folders))
    BOOST_ERROR("tests/README.md and the folders of tests/ differ in " + folder);
}

BOOST_AUTO_TEST_SUITE_END()
