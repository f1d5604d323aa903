// Things that are compiled once: the library, for all scripts that use the flags of a release, and templates that take
// long. And the version, which several files name.
#include <boost/test/unit_test.hpp>
#include <regex>
#include <string>
#include <vector>

#include "sources.h"

namespace {

using namespace house_rules;

/// Returns calls of `configure` that make a separate build with the compiler and the flags that build/release has.
std::vector<std::string> builds_of_their_own(const Source& s) {
  const bool script = s.path.starts_with("scripts/") || s.path.starts_with(".ci/");
  if (!script || s.path == "scripts/lib.sh") return {};
  static const std::regex continued(R"(\\\n)");
  const std::string text = std::regex_replace(s.text, continued, " ");
  static const std::regex call(R"([^\n]*\bconfigure build/[^\n]*)");
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), call); at != std::sregex_iterator(); ++at)
    if (const std::string line = (*at)[0]; line.find("-DCMAKE_CXX_COMPILER=") == std::string::npos &&
                                           line.find("-DCMAKE_TOOLCHAIN_FILE=") == std::string::npos &&
                                           line.find("-DFERRITE_SMALL=") == std::string::npos)
      found.push_back(s.path + ": " + line);
  return found;
}

/// Returns sources that compile the JSON parser's templates: two CPU seconds each.
std::vector<std::string> parsers_of_json(const std::vector<Source>& all) {
  std::vector<std::string> found;
  for (const Source& s : all)
    if (in_library(s) && s.text.find("#include <nlohmann/") != std::string::npos) found.push_back(s.path);
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(build)

BOOST_AUTO_TEST_CASE(one_version_is_named_everywhere) {
  const auto named_in = [](const char* path, const char* pattern) {
    const std::string text = read(fs::path(FERRITE_SOURCE_DIR) / path);
    std::smatch found;
    return std::regex_search(text, found, std::regex(pattern)) ? found[1].str() : std::string("none");
  };
  const std::string version = named_in("CMakeLists.txt", R"re(project\(Ferrite VERSION (\d+\.\d+\.\d+) )re");
  BOOST_TEST(version != "none");
  BOOST_TEST(named_in("pyproject.toml", R"re(\nversion = "([\d.]+)")re") == version);
  BOOST_TEST(named_in("packaging/vcpkg/ports/ferrite/vcpkg.json", R"re("version": "([\d.]+)")re") == version);
  BOOST_TEST(named_in("tests/tools/ferrite_test.sh", R"re("ferrite ([\d.]+)" "\$tool" --version)re") == version);
}

BOOST_AUTO_TEST_CASE(the_demo_the_tests_and_the_benchmarks_share_one_build) {
  BOOST_TEST(builds_of_their_own({"scripts/x", "  configure build/x -DCMAKE_BUILD_TYPE=Release\n"}).size() == 1U);
  BOOST_TEST(builds_of_their_own({"scripts/x", "configure build/x \\\n  -DCMAKE_CXX_COMPILER=clang++-14\n"}).empty());
  BOOST_TEST(builds_of_their_own({"scripts/x", "configure build/x -DFERRITE_SMALL=ON \\\n"}).empty());
  for (const Source& s : sources())
    for (const std::string& line : builds_of_their_own(s))
      BOOST_ERROR(line + "; use configure_release of scripts/lib.sh");
}

BOOST_AUTO_TEST_CASE(one_source_compiles_the_json_parser) {
  const Source parser{"io/x.cpp", "#include <nlohmann/json.hpp>\n"};
  BOOST_TEST(parsers_of_json({parser, {"io/y.cpp", parser.text}, {"tests/x.cpp", parser.text}}).size() == 2U);
  BOOST_TEST(parsers_of_json(sources()) == std::vector<std::string>{"io/detail/json_parser.cpp"},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
