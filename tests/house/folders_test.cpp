// Every folder of tests has a line in tests/README.md, and files can be found by their names.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "house/sources.h"

namespace {

/// Returns folders of tests without a line in the table of tests/README.md, and lines of folders that do not exist.
std::vector<std::string> untold_folders(const std::string& page, const std::set<std::string>& folders) {
  std::set<std::string> told;
  static const std::regex pattern(R"(\n\| `([a-z_]+)` \|)");
  for (auto at = std::sregex_iterator(page.begin(), page.end(), pattern); at != std::sregex_iterator(); ++at)
    told.insert((*at)[1]);
  std::vector<std::string> faults;
  std::ranges::set_symmetric_difference(folders, told, std::back_inserter(faults));
  return faults;
}

/// Returns names that several files share and of which one is in a subfolder: a search for "reader.cpp" would find
/// nine. A family of operations, its layers and its kernels share a name, so tensor/ and nn/ are left out.
std::vector<std::string> shared_names(const std::vector<std::string>& paths) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const std::string& path : paths) {
    const std::string folder = house_rules::folder_of(path);
    const bool code = path.ends_with(".cpp") || path.ends_with(".h");
    if (house_rules::kFolders.contains(folder) && code && folder != "tensor" && folder != "nn")
      by_name[path.substr(path.rfind('/') + 1)].push_back(path);
  }
  std::vector<std::string> faults;
  for (const auto& [name, all] : by_name) {
    const auto is_inside = [](const std::string& path) { return std::ranges::count(path, '/') > 1; };
    if (all.size() > 1 && std::ranges::any_of(all, is_inside)) faults.push_back(all[0] + " and " + all[1]);
  }
  return faults;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(folders)

BOOST_AUTO_TEST_CASE(files_below_a_folder_have_names_of_their_own) {
  BOOST_TEST(shared_names({"io/gguf/reader.cpp", "io/wav/reader.cpp"}).size() == 1U);
  BOOST_TEST(shared_names({"io/gguf/gguf_reader.cpp", "tensor/mel.h", "nn/layers/mel.h"}).empty());
  std::vector<std::string> paths;
  for (const house_rules::Source& s : house_rules::sources()) paths.push_back(s.path);
  for (const std::string& fault : shared_names(paths)) BOOST_ERROR("two files of one name: " + fault);
}

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
