// All facts of dtypes are in one table, tensor/dtype.h, from which everything else about dtypes follows.
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

/// Returns places of a source that distinguish dtypes one by one: switches, arrays by dtype, lists of three and more.
std::vector<std::string> tables_of_dtypes(const std::string& path, const std::string& text) {
  if (path == "tensor/dtype.h") return {};
  static const std::set<std::string> kernels = {"tensor/block.h", "tensor/kernel/kernels.h"};  // arrays by dtype
  static const std::regex pattern(R"(case (\w+::)*Dtype::\w+|\[\s*k(Computed)?Dtypes\b|\{(\s*Dtype::\w+\s*,){2,})");
  std::vector<std::string> found;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), pattern); at != std::sregex_iterator(); ++at)
    if (!kernels.contains(path) || !at->str().starts_with("[")) found.push_back(at->str());
  return found;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(dtypes)

BOOST_AUTO_TEST_CASE(there_is_one_table_of_dtypes) {
  const std::string bad =
      "switch (t) { case Dtype::f64: return 8; }\n"
      "constexpr const char* names[kDtypes.size()] = {};\n"
      "for (const Dtype t : {Dtype::f32, Dtype::f64, Dtype::i32}) f(t);\n";
  BOOST_TEST(tables_of_dtypes("io/x.cpp", bad).size() == 3U, "the rule does not catch its bad example");
  BOOST_TEST(tables_of_dtypes("tensor/dtype.h", bad).empty());
  BOOST_TEST(tables_of_dtypes("tensor/block.h", "Block of[kComputedDtypes] = {};").empty());
  std::size_t seen = 0;
  for (const char* folder :
       {"tensor", "autograd", "compile", "nn", "dsl", "io", "exchange", "train", "tools", "examples", "bench"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FERRITE_SOURCE_DIR) / folder)) {
      const std::string ending = entry.path().extension().string();
      if (ending != ".h" && ending != ".cpp") continue;
      ++seen;
      std::ifstream file(entry.path());
      const std::string path = fs::relative(entry.path(), FERRITE_SOURCE_DIR).generic_string();
      for (const std::string& fault : tables_of_dtypes(path, {std::istreambuf_iterator<char>(file), {}}))
        BOOST_ERROR(path + ": a table of dtypes outside tensor/dtype.h: " + fault);
    }
  BOOST_TEST(seen > 200U);
}

BOOST_AUTO_TEST_SUITE_END()
