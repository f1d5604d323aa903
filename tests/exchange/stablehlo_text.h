#pragma once
/// Checks of StableHLO texts that need no other implementation.
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace stablehlo_text {

/// Returns the path of a golden text. Review a regenerated text (FERRITE_REGENERATE=1) before it is committed: it is
/// what the exporter promises.
inline std::string golden_path(const std::string& name) {
  return std::string(FERRITE_SOURCE_DIR) + "/tests/data/stablehlo/" + name + ".mlir";
}

inline std::string golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Returns the first fault in a text: every value must be defined once, before its uses, in a block that has not ended,
/// and no value may be missing.
inline std::string fault_in(const std::string& text) {
  static const std::regex nothing(R"(\(, |, ,|, :|= stablehlo\.\w+ (,|:|\[))"), value(R"((%\w+)( = )?)"),
      definition(R"(^ *(%\d+)(:\d+)? = )");
  std::set<std::string> defined = {"%old", "%new", "%sum"};
  std::vector<std::set<std::string>> outside;  // names outside of the blocks that are open
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//")) continue;
    if (std::regex_search(line, nothing)) return "an operand is missing: " + line;
    if (line[line.find_first_not_of(' ')] == '}' && !outside.empty()) {
      defined = outside.back();
      outside.pop_back();
    }
    std::smatch left;
    const bool defines = std::regex_search(line, left, definition);
    const bool head = line.find("func.func") != std::string::npos;
    const std::string own = defines ? left[1].str() : "";
    const std::string uses = defines ? line.substr(left[0].str().size()) : line;
    for (auto at = std::sregex_iterator(uses.begin(), uses.end(), value); at != std::sregex_iterator(); ++at) {
      const std::string name = (*at)[1].str();
      if (head || (*at)[2].matched) defined.insert(name);
      if (!defined.contains(name)) return name + " is not defined: " + line;
    }
    if (defines && !defined.insert(own).second) return own + " is defined twice";
    if (line.ends_with("{")) outside.push_back(defined);
  }
  return "";
}

inline void check_golden(const std::string& name, const std::string& text) {
  if (std::getenv("FERRITE_REGENERATE")) std::ofstream(golden_path(name)) << text;
  BOOST_TEST(text == golden(name));
  BOOST_TEST(fault_in(text) == "");
}

}  // namespace stablehlo_text
